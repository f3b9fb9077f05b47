"""How large may a cluster be that we build? One place for what specs refuse and addresses allow."""

MAX_NODES = 256
"""Of a cluster. One more would do no harm: an emulated network's subnet has room for 65,534. This
many pods a tool has followed; of one machine's nodes, or hosts reached from one, they have not been
tried."""
MAX_NICS_PER_NODE = 16
"""As many as a node of eight GPUs has with two each. Each is a subnet of its own."""
