"""Broadgauge measures how much of your GPUs' time the network and the storage take."""

__version__ = "0.1.0"
