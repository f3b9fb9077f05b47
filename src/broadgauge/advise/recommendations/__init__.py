"""Which network, how many nodes, which batch? Rules on predictions, each with its arithmetic."""
