"""The commands, a module each: options in, one call of the package, and what it found, printed."""
