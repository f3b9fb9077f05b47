"""What does advise know of each kind of workload? One module a kind, found by the registry."""
