"""How is it said? The same in the terminal, on the page and in files."""
