"""Pure array functions, one formula per file: no classes but records, no validation, no I/O."""
