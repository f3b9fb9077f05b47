"""Is RDMA really on, and why is this job slow or stuck? Logs and hosts, judged by rules."""
