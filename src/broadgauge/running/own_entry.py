"""How does a command of one's own stand in an experiment? Its entry of `workloads`, as text."""

import json
import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from broadgauge.running.experiment_text import slug
from broadgauge.running.own_command import OwnCommand
from broadgauge.specs.errors import InputError
from broadgauge.specs.text.plain_messages import value_problem
from broadgauge.specs.workloads.command import CommandMetric

README_METRIC = ("step_time_s", r"step \d+ took ([\d.]+) s")
"""What README's script prints, where nobody says what another prints."""
WARM_UP = 10
"""Samples that are left out: kernels are chosen and caches filled in the first steps."""
_MOST_COLUMNS = 96
_PLAIN = re.compile(r"(--?)?(\.*/|\.?[A-Za-z_])[A-Za-z0-9_./=+-]*")
"""`.5` and `-.5` are numbers."""
_NO_TEXT = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", ".nan", ".inf", "-.inf")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEntry:
    """A command with what is measured of it, and where it runs."""

    command: OwnCommand
    metrics: tuple[CommandMetric, ...]
    """Empty: README's, which has to be made the script's own."""
    folder: str | None = None
    """From the experiment file's folder to where the command was typed; None: they are one."""

    @property
    def name(self) -> str:
        """Of the script: `train`."""
        return slug(self.command.title) or "mine"

    def lines(self) -> Iterator[str]:
        """Of `workloads`."""
        command = self.command
        yield "  # Your own script, started by torchrun on every node."
        yield "  - kind: command"
        yield f"    name: {scalar(self.name)}"
        yield from _listed("command", command.words)
        if self.folder is not None:
            yield f"    working_directory: {scalar(self.folder)}"
        if command.python is not None:
            yield f"    python: {scalar(self._from_folder(command.python))}"
        if command.environment:
            yield "    environment:"
        for name, value in command.environment.items():
            shown = "{from_environment: true}" if value is None else _quoted(value)
            yield f"      {name}: {shown}"
        if not self.metrics:
            yield "    # Make it the regex of a line that your script prints: its first group is"
            yield "    # the number, each match a sample. `json_key: KEY` is for lines of JSON."
        yield "    metrics:"
        for name, regex, lower in self._printed():
            which = "" if lower else ", lower_is_better: false"
            quoted = regex.replace("'", "''")
            yield f"      - {{name: {name}, regex: '{quoted}', skip_first: {WARM_UP}{which}}}"

    def _from_folder(self, path: str) -> str:
        is_fixed = path.startswith("/") or self.folder is None
        return path if is_fixed else os.path.normpath(f"{self.folder}/{path}")

    def _printed(self) -> Iterator[tuple[str, str, bool]]:
        for metric in self.metrics:
            yield metric.name, metric.regex or "", metric.lower_is_better
        if not self.metrics:
            yield (*README_METRIC, True)


def read_metrics(texts: Sequence[str]) -> tuple[CommandMetric, ...]:
    """Each `NAME=REGEX`. Raises InputError."""
    found = tuple(_metric(text) for text in texts)
    names = [metric.name for metric in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--metric: two metrics are named `{name}`", hint="one of them")
    return found


def _metric(text: str) -> CommandMetric:
    hint = r"--metric 'step_time_s=step \d+ took ([\d.]+) s'"
    name, has_regex, regex = text.partition("=")
    if not has_regex or not regex or not regex.isprintable():
        raise InputError(f"--metric takes NAME=REGEX, not `{text}`", hint=hint)
    lower = not name.endswith(("_per_s", "_tflops"))
    try:
        return CommandMetric(name=name, regex=regex, lower_is_better=lower, skip_first=WARM_UP)
    except ValidationError as error:
        detail = error.errors()[0]
        key = str(detail["loc"][0]) if detail["loc"] else "metric"
        reason, own_hint = value_problem(key, detail)
        raise InputError(f"--metric {text}: {reason}", hint=own_hint or hint) from None


def scalar(text: str) -> str:
    """As it is where YAML reads it as this very text, else quoted."""
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT and text.strip(".-")
    return text if is_plain else _quoted(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _listed(key: str, words: Sequence[str]) -> Iterator[str]:
    line = f"    {key}: [{', '.join(map(scalar, words))}]"
    if len(line) <= _MOST_COLUMNS:
        yield line
        return
    yield f"    {key}:"
    yield from (f"      - {scalar(word)}" for word in words)
