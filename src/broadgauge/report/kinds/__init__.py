"""How is each kind of workload shown? One module a kind, found by the registry."""
