"""What a cluster has, as far as its API tells: nodes, GPUs, RDMA devices, network definitions."""
