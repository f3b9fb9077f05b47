"""How is the user's own script started, and which of its numbers are measured?"""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from broadgauge.messages.storage_words import KNOWN, placeholders
from broadgauge.messages.vocabulary import Comma
from broadgauge.specs.base import Name, Spec, did_you_mean, placed_error
from broadgauge.specs.metrics import unit_of
from broadgauge.specs.tracing import CommandTracing
from broadgauge.specs.workload_base import WorkloadBase

METRIC_NAME_PATTERN = r"^[a-z][a-z0-9_]*$"
MEASURED_BY_US = (
    *("busbw_gbyte_per_s", "algbw_gbyte_per_s", "wire_bytes", "link_rate_gbps", "line_share_ratio"),
    *("amplification_ratio", "cpu_busy_ratio", "cpu_s_per_gbyte", "retransmits_count"),
    *("drops_count", "network_cost_s", "network_share_ratio", "slowest_pair_ratio"),
    *("start_time_s", "start_cpu_s"),
)
"""Metrics that a command may not print: they would be taken for counted ones."""
COMMON_UNITS = "`_s`, `_per_s`, `_bytes`, `_ratio`, `_count`, `_gbyte_per_s` or `_tflops`"
"""Ends of names that scripts print figures of, for a message; all: `UNIT_SUFFIXES`."""


SOURCES = ("regex", "json_key", "trainer_state", "tensorboard")
"""Of a metric's samples: the command's output, or a file that it leaves."""
BELONGS_TO = {"comma": "regex", "key": "trainer_state", "tag": "tensorboard"}


class CommandMetric(Spec):
    """Which number is measured? Exactly one of SOURCES says where it is found."""

    name: Annotated[str, Field(pattern=METRIC_NAME_PATTERN, max_length=64)]
    """Ends with its unit (specs/metrics.py): `step_time_s`, `images_per_s`; or is a `loss`."""
    regex: str | None = None
    """Its first group is the number; each match is one sample."""
    json_key: str | None = None
    """The key of a number in lines that are JSON objects; dots step into objects."""
    trainer_state: str | None = Field(default=None, min_length=1)
    """A `trainer_state.json` as transformers' Trainer leaves it, or the folder of its checkpoints,
    from the command's folder; read when the command has ended."""
    key: str | None = None
    """Of `trainer_state`: the key of a number in the entries of its `log_history`: `loss`."""
    tensorboard: str | None = Field(default=None, min_length=1)
    """A TensorBoard event file, or a folder with some anywhere below, from the command's folder;
    read when the command has ended."""
    tag: str | None = None
    """Of `tensorboard`: the name of a scalar: `train/loss`."""
    comma: Comma | None = None
    """What a comma in a number of the regex means, `decimal` in `1,5` or `thousands` in `1,234`;
    null: numbers that may be either are refused."""
    scale: float = Field(default=1.0, gt=0, le=1e12)
    """Printed numbers are multiplied by it: 0.001 where milliseconds are printed of a `_s`."""
    lower_is_better: bool = True
    """Is less of it better? Comparisons say `better` and `worse` by this."""
    skip_first: int = Field(default=0, ge=0, le=1_000_000)
    """How many first samples are left out, as warm-up."""

    @field_validator("name")
    @classmethod
    def _ends_with_its_unit(cls, name: str) -> str:
        if unit_of(name) is None:
            for ending, scale in (("_ms", 0.001), ("_us", 1e-6)):
                if name.endswith(ending):
                    seconds = f"{name.removesuffix(ending)}_s"
                    raise ValueError(
                        f"a metric is in seconds: `name: {seconds}` with `scale: {scale:g}`"
                    )
            raise ValueError(
                f"a metric's name ends with its unit, such as {COMMON_UNITS}; or with `loss`"
            )
        return name

    @field_validator("regex")
    @classmethod
    def _compiles(cls, regex: str | None) -> str | None:
        if regex is not None:
            try:
                groups = re.compile(regex).groups
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from error
            if groups < 1:
                raise ValueError("the regular expression needs one group, the number")
        return regex

    @model_validator(mode="after")
    def _one_source(self) -> "CommandMetric":
        if sum(getattr(self, source) is not None for source in SOURCES) != 1:
            raise ValueError("exactly one of " + ", ".join(f"`{source}`" for source in SOURCES))
        for key, source in BELONGS_TO.items():
            if getattr(self, key) is not None and getattr(self, source) is None:
                if key == "comma":
                    raise placed_error("only a `regex` finds numbers with commas", (key,))
                raise placed_error(f"`{key}` is said of a `{source}`", (key,))
        for key, source in (("key", "trainer_state"), ("tag", "tensorboard")):
            if getattr(self, source) is not None and getattr(self, key) is None:
                raise placed_error(f"`{source}` needs a `{key}`: which of its numbers", (source,))
        return self


class CommandWorkload(WorkloadBase):
    """The user's own script under torchrun, one torchrun a node."""

    kind: Literal["command"]
    """The kind of workload: says which keys the entry has."""
    name: Name = "command"
    """Name in tables, labels and selectors."""
    command: tuple[str, ...] = Field(min_length=1)
    """The script and its arguments, as torchrun takes them: `[train.py, --epochs, "1"]`.
    `{storage.data}`, `{storage.model}` and `{storage.checkpoints}` stand for folders, or URLs, of
    its case's storage; so they do in `config` and `environment`."""
    config: str | None = Field(default=None, min_length=1, max_length=1024)
    """A JSON file where the command runs, whose keys become arguments behind it, in order, `true`
    as a bare flag: as the published `config.json` is read. `nnodes`, `nproc_per_node` and `module`
    in it are left out, since `cluster.shapes` and `command` say them. null: none."""
    working_directory: str | None = None
    """Where the command runs; null: the experiment file's folder."""
    python: str | None = Field(default=None, min_length=1)
    """Which Python runs it: an interpreter, the folder of a virtual environment, or the name of a
    conda environment; it needs torch. null: Broadgauge's own."""
    stack_hook: bool = True
    """Have the ranks' Python load a few lines (PYTHONPATH, sitecustomize) that write where a rank
    stands when the job hangs."""
    metrics: tuple[CommandMetric, ...] = Field(min_length=1, max_length=64)
    """Figures that are read from the command's output."""
    prepare: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Runs once on the host, before any node exists: downloads belong here."""
    trace: CommandTracing | None = None
    """After the timed launch start the command once more, with PyTorch's profiler on for some of
    its steps; null: don't."""

    has_steps: ClassVar[bool] = True
    is_under_torchrun: ClassVar[bool] = True

    @property
    def tracing(self) -> CommandTracing | None:
        return self.trace

    @property
    def needs_storage(self) -> bool:
        """Does a word or a variable of its own name a folder of one? `config` is not read yet."""
        return any(placeholders(text) for _, text in self._texts())

    def _texts(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """What may hold placeholders, each with its place in the entry."""
        for i, word in enumerate(self.command):
            yield ("command", i), word
        for name, value in self.environment.items():
            if isinstance(value, str):
                yield ("environment", name), value

    @model_validator(mode="after")
    def _placeholders_are_known(self) -> "CommandWorkload":
        for place, text in self._texts():
            for name in placeholders(text):
                if name not in KNOWN:
                    known = ", ".join(f"`{{storage.{each}}}`" for each in KNOWN)
                    hint = did_you_mean(name, KNOWN) or f"there are {known}"
                    message = f"`{{storage.{name}}}` stands for nothing"
                    raise placed_error(message, place, hint)
        return self

    @property
    def words_of_files(self) -> tuple[str, ...]:
        below = "" if self.working_directory is None else f"{self.working_directory}/"
        return tuple(below + word for word in (*self.command, *filter(None, [self.config])))

    @property
    def words_shown(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (("command", self.command), ("prepare", self.prepare or ()))

    @model_validator(mode="after")
    def _traced_by_the_hook(self) -> "CommandWorkload":
        if self.trace is not None and not self.stack_hook:
            raise placed_error(
                "the profiler comes by the hook that `stack_hook: false` leaves out",
                ("trace",),
                hint="leave one of the two out",
            )
        return self

    @field_validator("metrics")
    @classmethod
    def _names_differ(cls, metrics: tuple[CommandMetric, ...]) -> tuple[CommandMetric, ...]:
        names = [metric.name for metric in metrics]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise ValueError(f"two metrics are named `{name}`")
            if name in MEASURED_BY_US:
                raise ValueError(f"`{name}` is what Broadgauge itself counts: choose another name")
        return metrics
