"""When does each piece run, and how long is the step? Strategies, and two engines for them."""
