"""What moved, what holds, what to expect: evidence from which a verdict is made."""
