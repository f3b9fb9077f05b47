"""Is all there that ranks need? An init container of the training's pods waits for it.

So `kubectl apply` may come in any order. Exit codes: 0 all is there, 1 it did not come in
time, 2 the Job that brings it has failed for good.
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
    last_failure,
    read_order,
    say,
    shown,
    who,
)
from broadgauge.messages.prepare_order import AnyOrder, FetchOrder, PrepareOrder

LOOK_EVERY_S = 0.5
GRACE_S = 120.0
"""After a failure that lasts: somebody may have put it right, and a new Job begin soon."""


def main() -> int:
    """The exit code."""
    end_when_told()
    options = argparse.ArgumentParser(prog="broadgauge.zip wait", allow_abbrev=False)
    options.add_argument("--limit-s", type=float, required=True)
    options.add_argument("--grace-s", type=float, default=GRACE_S)
    told = options.parse_args()
    try:
        order = read_order()
    except LastingError as error:
        say(str(error))
        return LASTING
    status = _wait(order, told.limit_s, told.grace_s)
    if status == LASTING:
        say(f"the Job {order.maker} has failed for good; once all is there, start this job again")
    elif status == FAILED:
        say(
            f"it did not come in {told.limit_s:g} s (`kubernetes.prepare.wait_limit_s`): what does "
            f"`kubectl logs job/{order.maker}` say? Once all is there, start this job again"
        )
    if status != ALL_IS_THERE:
        return status
    for part in order.parts:
        say(f"{_what(part)} is there: {order.content(part)}")
    return ALL_IS_THERE


def _wait(order: PrepareOrder, limit_s: float, grace_s: float) -> int:
    """The exit code."""
    begun_s, told_s, lasting_s = time.monotonic(), float("-inf"), None
    while missing := tuple(_missing(order)):
        now_s, failure = time.monotonic(), last_failure(order)
        is_lasting = failure is not None and failure.status == LASTING
        lasting_s = (now_s if lasting_s is None else lasting_s) if is_lasting else None
        is_given_up = lasting_s is not None and now_s - lasting_s >= grace_s
        is_late = now_s - begun_s >= limit_s
        if now_s - told_s >= TELL_EVERY_S or is_late or is_given_up:
            told_s = now_s
            why = f"; its last try failed: {failure.text}" if failure else ""
            say(f"waiting for {'; '.join(missing)}. The Job {order.maker} brings it{why}")
        if is_given_up:
            return LASTING
        if is_late:
            return FAILED
        time.sleep(LOOK_EVERY_S)
    return ALL_IS_THERE


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
