"""How do the constants of the catalog get their values? From published step times."""
