"""What others' programs measured: their files read, and kept as a run like any other."""
