"""`python -m broadgauge` is `broadgauge`."""

from broadgauge.cli.main import entry_point

entry_point()
