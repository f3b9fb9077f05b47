"""Which hardware, limits and software does a process see here? Files are read, none is loaded."""
