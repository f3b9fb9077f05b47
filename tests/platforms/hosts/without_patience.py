"""The command with scripted ranks, and a tool that soon gives up a leader that it can't hear."""

from broadgauge.platforms.led import following

following.RECONNECT_LIMIT_S = 5.0

import tests.e2e.without_torch  # noqa: E402, F401  it runs the command
