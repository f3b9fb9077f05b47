"""What does each piece of a step cost? Kernels, launches and collectives, each by itself."""
