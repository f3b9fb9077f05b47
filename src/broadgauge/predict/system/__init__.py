"""What does a calibrated machine predict? From its system file."""
