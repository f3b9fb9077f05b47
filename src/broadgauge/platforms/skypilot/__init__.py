"""Clusters of a cloud, brought up and down through the `sky` command."""
