"""How does each strategy run a step? A description of its collectives and of their order each."""
