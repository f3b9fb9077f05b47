"""The programs of emulated storages: an S3 server and the mounts of its bucket."""
