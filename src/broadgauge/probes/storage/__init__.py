"""What does a storage do for a training? Probes of its phases, and of the storage alone."""
