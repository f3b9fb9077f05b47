"""What does the Job in `35-prepare/` run? It fills the volume with what is not there yet.

Exit codes: 0 all is there, 1 it can't be had now (the Job tries again), 2 nor at another try.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from broadgauge.agent.volume.fetching import fetch, make_once
from broadgauge.agent.volume.telling import (
    ALL_IS_THERE,
    FAILED,
    LASTING,
    Failure,
    FetchError,
    LastingError,
    end_when_told,
    keep_failure,
    one_line,
    read_order,
    say,
    shown,
)
from broadgauge.messages.prepare_order import RANK_VARIABLES, CommandOrder, PrepareOrder


def main() -> int:
    """The exit code."""
    end_when_told()
    try:
        order = read_order()
    except LastingError as error:
        say(str(error))
        return LASTING
    keep_failure(order, None)  # an earlier Job's: whoever waits gives this one its time
    status, text = _status(order)
    say(text)
    keep_failure(order, Failure(status=status, text=text) if status else None)
    return status


def _status(order: PrepareOrder) -> tuple[int, str]:
    """The exit code, and what is said last."""
    try:
        for part in order.fetched:
            fetch(order, part)
        if order.command is not None:
            _run(order, order.command)
    except LastingError as error:
        return LASTING, f"{error}. Another try would not help: none is made"
    except FetchError as error:
        return FAILED, str(error)
    except OSError as error:
        return FAILED, one_line(error)
    return ALL_IS_THERE, "all is there"


def _run(order: PrepareOrder, command: CommandOrder) -> None:
    """The user's own, once. Raises FetchError and OSError."""
    known, own = order.variables(), RANK_VARIABLES["command"]

    def make(room: Path) -> dict[str, Any]:
        whole = room / "whole"
        shutil.rmtree(whole)  # half of what a killed one has written
        whole.mkdir()
        variables = os.environ | known | {own: str(whole)}
        try:
            ended = subprocess.run(command.words, cwd=command.folder, env=variables, check=False)
        except OSError as error:
            raise LastingError(f"{command.words[0]} does not start: {error.strerror}") from None
        if ended.returncode:
            raise FetchError(f"{command.words[0]} ended with {ended.returncode}")
        return {"words": [shown(word) for word in command.words]}

    make_once(order, command, f"what {shown(command.words[0])} makes", make)


if __name__ == "__main__":
    sys.exit(main())
