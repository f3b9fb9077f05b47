"""Where cases run in pods of a Kubernetes or OpenShift cluster."""
