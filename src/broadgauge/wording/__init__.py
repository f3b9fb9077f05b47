"""How are amounts, near misses and odd files put into words? The standard library only."""
