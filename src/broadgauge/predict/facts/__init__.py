"""What is known before anything is computed? Cases as arrays, sizes of models, constants."""
