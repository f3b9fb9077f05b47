"""How is SkyPilot told what to do? By its `sky` command, as a child process: never by import.

A child is in a session of its own, so that Ctrl-C reaches the tool alone: it still has clusters to
bring down. Source: SkyPilot 0.14.1, `sky launch|down|status --help`; tests hold every argument here
against its own command-line parser.
"""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.platforms.launch_folders import private
from broadgauge.specs.errors import PlatformError

COMMAND = "sky"
ASK_LIMIT_S = 300.0
DOWN_LIMIT_S = 900.0
"""A cloud takes minutes to end machines; SkyPilot waits for it."""
END_LIMIT_S = 10.0
SHOWN_LINES = 3
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f\x7f]")
_HINT = (
    "`pip install 'skypilot[nebius]'`, or for another cloud, into an environment of its own (it "
    "brings about 100 packages), its `sky` on PATH, then `sky check`"
)

Clean = Callable[[str], str]
"""Takes the values of secrets out of a text."""


def launch_words(
    cluster: str, task: Path, *, idle_minutes: int, secrets: Sequence[str]
) -> tuple[str, ...]:
    """Bring a cluster up, or send more to one that is; its autodown is set with it."""
    return (
        *("launch", "--yes", "--down", "--wait-for", "jobs"),
        *("--idle-minutes-to-autostop", str(idle_minutes), "--cluster", cluster),
        *(word for name in secrets for word in ("--secret", name)),
        str(task),
    )


def down_words(cluster: str) -> tuple[str, ...]:
    """End its machines."""
    return ("down", "--yes", cluster)


def status_words(cluster: str) -> tuple[str, ...]:
    """Ask the cloud itself whether it is there."""
    return ("status", "--refresh", "--output", "json", cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkyAnswer:
    """What a `sky` that has ended said."""

    exit_code: int
    output: str

    @property
    def last_words(self) -> str:
        """For an error."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return "; ".join(lines[-SHOWN_LINES:]) or f"exit code {self.exit_code}, without a word"


class Following:
    """A `sky` that runs, whose lines are read as they come and kept in a file."""

    def __init__(self, words: Sequence[str], log: Path, show: Callable[[str], None], clean: Clean):
        """Raises PlatformError where there is no `sky`."""
        self._process = _start(words)
        self._log = log
        self._show = show
        self._clean = clean
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._has_ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, sign: str, limit_s: float) -> bool:
        """Until a line has this; False: it ended without one, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or self._has(sign), limit_s)
            return self._has(sign)

    def wait(self, limit_s: float) -> SkyAnswer | None:
        """Until it ends; None: it goes on."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended, limit_s)
            if not self._has_ended:
                return None
        return SkyAnswer(exit_code=self._process.wait(), output="\n".join(self._lines))

    def end(self) -> None:
        """Stop listening. What it asked for goes on where SkyPilot does it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(END_LIMIT_S)
        self._reader.join(END_LIMIT_S)

    def _has(self, sign: str) -> bool:
        return any(sign in line for line in self._lines)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with open(self._log, "a", opener=private) as file:
            for raw in self._process.stdout:
                line = self._clean(plain(raw))
                if not line:
                    continue
                file.write(f"{line}\n")
                file.flush()
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
                self._show(line)
        self._process.wait()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()


def ask(words: Sequence[str], limit_s: float, clean: Clean) -> SkyAnswer | None:
    """Run a `sky` to its end; None: it did not end in time. Raises PlatformError where it is not
    there. An interrupt leaves it running: what it was asked for is still wanted."""
    process = _start(words)
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    lines = (clean(plain(line)) for line in output.splitlines())
    return SkyAnswer(exit_code=process.returncode, output="\n".join(lines))


def is_there(answer: SkyAnswer | None) -> bool | None:
    """What does `sky status --output json` say of one cluster? None: nobody knows.

    What SkyPilot logs may stand before the JSON.
    """
    if answer is None or answer.exit_code != 0:
        return None
    begins = re.search(r"^\[", answer.output, re.MULTILINE)
    if begins is None:
        return None
    try:
        told, _ = json.JSONDecoder().raw_decode(answer.output[begins.start() :])
    except ValueError:
        return None
    return any(isinstance(each, dict) and each.get("status") != "STOPPED" for each in told)


def plain(line: str) -> str:
    """Without colours, and of what was written over itself the last."""
    return _CONTROL.sub("", line.rstrip("\n").rpartition("\r")[2] or line.strip("\r\n")).rstrip()


def _start(words: Sequence[str]) -> "subprocess.Popen[str]":
    try:
        return subprocess.Popen(
            [COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError:
        raise PlatformError("there is no `sky` here, SkyPilot's command", hint=_HINT) from None
    except OSError as error:
        raise PlatformError(f"`sky` can't be run: {error.strerror or error}", hint=_HINT) from error
