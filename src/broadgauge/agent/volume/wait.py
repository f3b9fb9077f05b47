"""Is all there that ranks need? An init container of the training's pods waits for it.

So `kubectl apply` may come in any order. Exit codes: 0 all is there, 1 it did not come in time.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from broadgauge.agent.volume.links import is_done, is_linked, rooms_of
from broadgauge.agent.volume.telling import (
    ALL_IS_THERE,
    FAILED,
    LASTING,
    TELL_EVERY_S,
    LastingError,
    end_when_told,
    last_error,
    read_order,
    say,
    shown,
    who,
)
from broadgauge.messages.prepare_order import AnyOrder, FetchOrder, PrepareOrder

LOOK_EVERY_S = 0.5


def main() -> int:
    """The exit code."""
    end_when_told()
    options = argparse.ArgumentParser(prog="broadgauge.zip wait", allow_abbrev=False)
    options.add_argument("--limit-s", type=float, required=True)
    limit_s = options.parse_args().limit_s
    try:
        order = read_order()
    except LastingError as error:
        say(str(error))
        return LASTING
    if not _wait(order, limit_s):
        say(
            f"it did not come in {limit_s:g} s (`kubernetes.prepare.wait_limit_s`): what does "
            f"`kubectl logs job/{order.maker}` say? Once all is there, start this job again"
        )
        return FAILED
    for part in order.parts:
        say(f"{_what(part)} is there: {order.content(part)}")
    return ALL_IS_THERE


def _wait(order: PrepareOrder, limit_s: float) -> bool:
    """Did all come in time?"""
    begun_s, told_s = time.monotonic(), float("-inf")
    while missing := tuple(_missing(order)):
        now_s = time.monotonic()
        if now_s - told_s >= TELL_EVERY_S or now_s - begun_s >= limit_s:
            told_s = now_s
            said = last_error(order)
            why = f"; its last try failed: {said}" if said else ""
            say(f"waiting for {'; '.join(missing)}. The Job {order.maker} brings it{why}")
        if now_s - begun_s >= limit_s:
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def _missing(order: PrepareOrder) -> Iterator[str]:
    """In words."""
    for part in order.parts:
        place = Path(order.place(part))
        try:
            if not is_done(place):
                state = "begun" if rooms_of(place) else "not begun"
                yield f"{_what(part)} in {place} ({state})"
            elif not is_linked(order, part):
                yield f"{part.link} to be {_what(part)}, in {place}"
        except OSError as error:
            yield f"{_what(part)} in {place}: {error.strerror} for {who()}"


def _what(part: AnyOrder) -> str:
    if isinstance(part, FetchOrder):
        return f"{part.kind} {shown(part.source)}"
    return f"what {shown(part.words[0])} makes"


if __name__ == "__main__":
    sys.exit(main())
