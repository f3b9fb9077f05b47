"""What must be there before a kind of workload is run? One module a kind, found by the registry."""
