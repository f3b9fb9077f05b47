"""What should a reader know of one trial, beside its verdict? Each module: findings of one kind."""
