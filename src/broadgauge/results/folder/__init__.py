"""How is a run folder written and read? Valid at every moment, whoever ends the process."""
