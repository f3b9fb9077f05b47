"""What is a storage? A folder of the ranks' machines, and what is said of it."""

from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from broadgauge.messages.storage import Access
from broadgauge.specs.base import AS_STORED, Name, Spec, placed_error
from broadgauge.specs.units import ByteRate, show_bandwidth

_SAID = {"read": "read_gbyte_per_s", "write": "write_gbyte_per_s"}
"""Where it is said what `true` means, and what `emulated` leaves out."""


def _any_may_be_left_out(form: dict[str, Any]) -> None:
    """In the JSON Schema; what is left out is said beside it (`_rates_are_said`)."""
    form.pop("required")


class EmulatedDisk(Spec):
    """To what is a disk slowed? Each node by itself, all its ranks together."""

    model_config = ConfigDict(json_schema_extra=_any_may_be_left_out)

    read: ByteRate
    """What comes from the disk at most: `500 MB/s`, `4 Gbit/s`, or a number of byte/s."""
    write: ByteRate
    """The same of what goes to it."""

    def byte_per_s(self, access: Access) -> float:
        """At most, of one node."""
        return self.read if access == "read" else self.write

    @property
    def label(self) -> str:
        """What was measured, in words that claim no more than that."""
        read, write = (show_bandwidth(rate / 1e9) for rate in (self.read, self.write))
        return f"a disk throttled to {read} read, {write} write"


def _or_boolean(form: dict[str, Any]) -> None:
    """In the JSON Schema; a validated storage has none (`_rates_are_said`)."""
    form["anyOf"].append({"type": "boolean"})


class Storage(Spec):
    """One place where a training's files may be: a disk, a mount, memory."""

    name: Name
    """Names it in tables, labels and selectors."""
    path: str = Field(min_length=1, max_length=4096)
    """A folder that is there on every node; a relative one starts at the experiment's, on hosts at
    their `working_folder`, in pods where ranks run. In pods it is a mount of `kubernetes.volumes`.
    Broadgauge makes one of its own in it, and touches nothing else."""
    like: str | None = None
    """A storage of the catalog (`broadgauge catalog list storage`): the three keys below are its
    own where they are not given."""
    read_gbyte_per_s: float | None = Field(default=None, gt=0)
    """What it is said to read, of one node; null: not known. It labels; what it does is measured.
    """
    write_gbyte_per_s: float | None = Field(default=None, gt=0)
    """The same for writing."""
    is_durable: bool | None = None
    """Does it outlive the node? null: not known."""
    emulated: EmulatedDisk | None = Field(default=None, json_schema_extra=_or_boolean)
    """The disk that holds `path` is throttled to these rates, of each node, for the ranks alone:
    `{read: 500 MB/s, write: 200 MB/s}`. `true`, and what is left out: what the storage is said to
    read and write, by its `like` or by itself."""

    @field_validator("emulated", mode="before")
    @classmethod
    def _rates_are_said(cls, asked: Any, info: ValidationInfo) -> Any:
        """Both, whoever says them: a case's key has rates, and not what they came from."""
        is_wrong_above = not info.data.keys() >= set(_SAID.values())
        if asked is False or (asked is True and is_wrong_above):
            return None
        if is_wrong_above or not (asked is True or isinstance(asked, dict)):
            return asked
        said = {access: info.data[key] for access, key in _SAID.items()}
        rates = {access: round(rate * 1e9) for access, rate in said.items() if rate is not None}
        rates |= {} if asked is True else asked
        missing = [f"`{access}`" for access in _SAID if access not in rates]
        if missing and rates.keys() <= _SAID.keys():  # of a mistyped key more is said
            raise placed_error(
                f"`emulated`: nothing says what {' and '.join(missing)} should be",
                (),
                "`emulated: {read: 500 MB/s, write: 200 MB/s}`, or `like` a storage of the catalog",
            )
        return rates

    @model_validator(mode="after")
    def _is_looked_up(self, info: ValidationInfo) -> Self:
        """The catalog's figures are filled in when an experiment is read (specs/text/like.py)."""
        is_filled = self.read_gbyte_per_s is not None and self.write_gbyte_per_s is not None
        if self.like is not None and not is_filled and info.context is not AS_STORED:
            raise ValueError(f"`like: {self.like}` is looked up where an experiment file is read")
        return self

    @property
    def expected_gbyte_per_s(self) -> tuple[float | None, float | None]:
        """What it should read and write, of one node; None: not known."""
        if self.emulated is None:
            return self.read_gbyte_per_s, self.write_gbyte_per_s
        return self.emulated.read / 1e9, self.emulated.write / 1e9

    @property
    def what_it_is(self) -> str | None:
        """In words; None: the folder that its path names, of which nothing is said."""
        if self.emulated is not None:
            return self.emulated.label
        return None if self.like is None else f"said to be like {self.like}"
