"""Broadgauge measures how much of your GPUs' time the network takes."""

__version__ = "0.1.0"
