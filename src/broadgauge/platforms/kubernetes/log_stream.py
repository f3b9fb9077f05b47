"""What does a pod write, from its first line that is kept on, across cut streams?"""

import time
from collections.abc import Callable, Iterator

from broadgauge.platforms.kubernetes.api import AGAIN_AFTER_S, LONGEST_PAUSE_S, Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.led.handle import LinkLost

READ_LIMIT_S = 120.0
"""A leader says every 15 seconds that it is there."""
AWAY_LIMIT_S = 900.0
"""Of an API server; as long as a laptop may take to find another network."""

BEGINS = b""
"""A piece: what comes after it is the log from its beginning, or from where it was rotated."""


def follow_log(
    api: Api,
    namespace: str,
    pod: str,
    container: str,
    *,
    has_ended: Callable[[], bool],
    say: Callable[[str], None],
) -> Iterator[bytes]:
    """Its log as it comes; each time that the stream breaks, from its beginning again, which
    BEGINS tells.

    Whoever reads takes each event once, by its number. It ends with the pod. Raises LinkLost where
    the log can't be read any more.
    """
    attempt, since_s, has_said = 0, time.monotonic(), False
    while True:
        was_over, asked_s = has_ended(), 0.0
        try:
            params = {"container": container, "follow": "true"}
            yield BEGINS
            for piece in api.log(namespace, pod, params, READ_LIMIT_S):
                attempt, since_s = 0, time.monotonic()
                if has_said:
                    say(f"the log of {pod} can be read again")
                    has_said = False
                if piece:
                    yield piece
            if was_over:
                yield b"\n"  # nothing completes its last line any more
                return
        except ApiError as error:
            _refuse(error, pod, since_s)
            asked_s = min(error.retry_after_s, LONGEST_PAUSE_S)
            if not has_said and attempt >= len(AGAIN_AFTER_S) // 2:
                say(f"the log of {pod} can't be read: {error}; trying again")
                has_said = True
        time.sleep(max(asked_s, AGAIN_AFTER_S[min(attempt, len(AGAIN_AFTER_S) - 1)]))
        attempt += 1


def _refuse(error: ApiError, pod: str, since_s: float) -> None:
    """Raises LinkLost where waiting does not help."""
    if error.status in (401, 403, 404) and not error.is_passing:
        raise LinkLost(f"the log of {pod} can't be read: {error}") from error
    if time.monotonic() - since_s > AWAY_LIMIT_S:
        raise LinkLost(f"the log of {pod} could not be read for {AWAY_LIMIT_S:g} s") from error
