"""Which rows do tables have, and what stands above them? In the terminal and on the page."""
