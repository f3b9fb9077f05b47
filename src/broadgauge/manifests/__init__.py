"""What does a cluster have to be given, so that an experiment runs there? Bytes in, files out."""
