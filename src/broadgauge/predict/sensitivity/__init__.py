"""How does a training depend on its network? From step times at several link rates."""
