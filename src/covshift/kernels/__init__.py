"""Pure array functions, one formula per file: no classes, no validation, no I/O."""
