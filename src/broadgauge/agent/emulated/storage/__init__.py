"""Storages of our making: an S3 server on a node of its own, mounts of it, throttled disks."""
