"""What does a calibrated machine foretell? From its system file."""
