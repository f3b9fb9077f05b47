"""What does a case wait for most? One module for each kind of job, and what they share."""
