"""How is the user's own script started, and which of its numbers are measured?"""

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from broadgauge.messages.vocabulary import Comma
from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.workloads.common import WorkloadBase
from broadgauge.specs.workloads.metrics import unit_of
from broadgauge.specs.workloads.training_config import (
    MAX_BATCH_LEN,
    TrainingConfig,
    parse_training_config,
)

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


class CommandMetric(Spec):
    """Which number in the command's output is measured? Exactly one of `regex` and `json_key`."""

    name: Annotated[str, Field(pattern=METRIC_NAME_PATTERN, max_length=64)]
    """Ends with its unit: `step_time_s`, `images_per_s`; or is a `loss`."""
    regex: str | None = None
    """Its first group is the number; each match is one sample."""
    json_key: str | None = None
    """The key of a number in lines that are JSON objects; dots step into objects."""
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
        if (self.regex is None) == (self.json_key is None):
            raise ValueError("exactly one of `regex` and `json_key`")
        if self.comma is not None and self.regex is None:
            raise placed_error("JSON has no comma in a number", ("comma",))
        return self


class CommandWorkload(WorkloadBase):
    """The user's own script under torchrun, one torchrun a node."""

    kind: Literal["command"]
    """The kind of workload: says which keys the entry has."""
    name: Name = "command"
    """Name in tables, labels and selectors."""
    command: tuple[str, ...] = ()
    """The script and its arguments, as torchrun takes them: `[train.py, --epochs, "1"]`. Empty:
    the module that `config` names."""
    config: str | TrainingConfig | None = Field(default=None, union_mode="left_to_right")
    """A training's `config.json`, a path beside the experiment file: its keys become the script's
    arguments, in order, behind those of `command`; `module` is what runs where `command` is left
    out; `nnodes` and `nproc_per_node` are the cases' own. Stored is what was read. null: none."""
    max_batch_len: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """In the place of the key of this name in `config`: tokens that a rank has at most in a batch.
    null: the file's own, if it has one."""
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

    has_steps: ClassVar[bool] = True
    is_under_torchrun: ClassVar[bool] = True

    @property
    def words(self) -> tuple[str, ...]:
        """All that torchrun is given of it."""
        assert not isinstance(self.config, str), "it is read when the experiment is"
        if self.config is None:
            return self.command
        what = self.command or ("-m", str(self.config.module))
        return (*what, *self.config.arguments)

    @property
    def batch_tokens(self) -> int | None:
        return self.max_batch_len

    @property
    def unread_config(self) -> str | None:
        return self.config if isinstance(self.config, str) else None

    def with_config(self, text: str) -> Self:
        assert isinstance(self.config, str), "it is read once"
        config, max_batch_len = parse_training_config(
            text, self.config, max_batch_len=self.max_batch_len, names_module=not self.command
        )
        return self.model_copy(update={"config": config, "max_batch_len": max_batch_len})

    @property
    def read_config(self) -> TrainingConfig | None:
        return self.config if isinstance(self.config, TrainingConfig) else None

    @property
    def ignored_module(self) -> str | None:
        return self.read_config.module if self.command and self.read_config else None

    @model_validator(mode="before")
    @classmethod
    def _something_runs(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("config") is None:
            if not data.get("command", ()):
                raise placed_error(
                    "`command` takes a list of 1 or more, not an empty one"
                    if "command" in data
                    else "`command` is missing",
                    ("command",),
                    "`command: [train.py]`, or `config: config.json` with a `module`",
                )
            if data.get(MAX_BATCH_LEN) is not None:
                raise placed_error(
                    f"`{MAX_BATCH_LEN}` takes the place of a value in `config`, and there is none",
                    (MAX_BATCH_LEN,),
                    "`config: config.json`; or the option among the words of `command`",
                )
        return data

    @model_validator(mode="after")
    def _something_of_the_file_runs(self) -> "CommandWorkload":
        if isinstance(self.config, TrainingConfig):
            if not self.command and self.config.module is None:
                raise placed_error("it names no `module`, and there is no `command`", ("config",))
        elif self.config is not None and not self.config.strip():
            raise placed_error("`config` takes the path of a file", ("config",))
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
