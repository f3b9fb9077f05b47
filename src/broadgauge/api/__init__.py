"""What `import broadgauge` gives: each function does what the command of its name does."""
