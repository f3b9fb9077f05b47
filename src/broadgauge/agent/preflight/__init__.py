"""Is this machine fit for a launch, and does it reach the others? Before GPU hours are spent."""
