"""What is a storage, as an experiment names it? A folder of the nodes, an object store, or one that
is emulated on this machine.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.units import DelayS, RateGbps, SizeBytes, show_rate, show_time

GbytePerS = Annotated[float, Field(ge=1e-4, le=1e4)]
"""10^9 byte/s."""
ObjectUrl = Annotated[
    str, StringConstraints(pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s?#]*)?$")
]
"""`s3://bucket` or `s3://bucket/prefix`: a bucket's name has 3 to 63 characters."""
EmulatedKind = Literal["disk", "memory", "s3", "s3-mount", "s3-cached", "shared"]
BEHIND_LINK: frozenset[EmulatedKind] = frozenset({"s3", "s3-mount", "s3-cached", "shared"})


class EmulatedStorage(Spec):
    """A storage of our making on this machine, which is no slower than its parts are told to be.

    `disk`: a folder of this machine's disk, its rates limited by the block cgroup where root has
    it. `memory`: a tmpfs. `s3`: an S3 server on a node of its own, behind a shaped link. `s3-mount`
    and `s3-cached`: the same server's bucket, mounted by rclone without and with a local cache of
    writes, as SkyPilot's MOUNT and MOUNT_CACHED are. `shared`: a file system of that node, mounted
    by all others.
    """

    kind: EmulatedKind
    """What is made: the text above says of each."""
    read_gbyte_per_s: GbytePerS | None = None
    """Of a `disk`: the most that it reads; null: not limited."""
    write_gbyte_per_s: GbytePerS | None = None
    """Of a `disk`: the most that it writes; null: not limited."""
    rate_gbps: RateGbps | None = None
    """Behind a link: its line rate in each direction, 10^9 bit/s; null: unshaped."""
    request_latency_s: DelayS = 0.0
    """Of `s3` and its mounts: what the server waits before it answers a request."""
    cache_bytes: SizeBytes | None = None
    """Of `s3-cached`: the most that the local cache keeps; null: rclone's limit in SkyPilot,
    10 GB."""

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        for key, kinds in _KINDS_OF_KEYS.items():
            if key in self.model_fields_set and getattr(self, key) and self.kind not in kinds:
                raise placed_error(
                    f"`{key}` is said of {' and '.join(sorted(kinds))}, this is a `{self.kind}`",
                    (key,),
                )
        return self

    @property
    def label(self) -> str:
        """`s3-mount, 1 Gbit/s, 20 ms a request`."""
        words: list[str] = [self.kind]
        for what, rate in (("read", self.read_gbyte_per_s), ("write", self.write_gbyte_per_s)):
            if rate is not None:
                words.append(f"{what} {rate:g} GB/s")
        if self.rate_gbps is not None:
            words.append(show_rate(self.rate_gbps))
        if self.request_latency_s:
            words.append(f"{show_time(self.request_latency_s)} a request")
        return ", ".join(words)


_OBJECTS = frozenset({"s3", "s3-mount", "s3-cached"})
_KINDS_OF_KEYS: dict[str, frozenset[str]] = {
    "read_gbyte_per_s": frozenset({"disk"}),
    "write_gbyte_per_s": frozenset({"disk"}),
    "rate_gbps": frozenset(BEHIND_LINK),
    "request_latency_s": _OBJECTS,
    "cache_bytes": frozenset({"s3-cached"}),
}


class Storage(Spec):
    """One storage as the ranks see it: `path`, `url` or `emulated` says which."""

    name: Name
    """In labels, selectors and a workload's `storages`."""
    path: str | None = Field(default=None, min_length=1, max_length=4096)
    """A folder of each node: of a disk, a network file system, a mounted bucket. A folder of our
    own is made in it and removed again; nothing else there is touched."""
    url: ObjectUrl | None = None
    """A bucket or a prefix of one, read and written without a mount."""
    endpoint: str | None = Field(default=None, pattern=r"^https?://[^\s/]+/?$", max_length=512)
    """Of an S3 server that is not Amazon's; credentials come from the environment."""
    object_url: ObjectUrl | None = None
    """Of a `path` that is a mounted bucket: the bucket behind it, which is asked whether an object
    is there. null: it can't be asked, so durable is what fsync says."""
    emulated: EmulatedStorage | None = None
    """Made on this machine for the run."""
    store: Name | None = None
    """Where its bytes rest, for `advise`: two mounts of one bucket have one store. null: a store
    of its own."""
    is_shared: bool | None = None
    """Do all nodes see the same files? null: object stores and emulated shared ones do, others
    do not."""
    is_durable: bool | None = None
    """Does it outlive the node? null: object stores and shared ones do, others do not."""
    price_usd_per_hour: float | None = Field(default=None, ge=0, le=1e6)
    """US dollars for each hour that it is there."""
    description: str = ""
    """What it stands for, for the report."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        given = [key for key in ("path", "url", "emulated") if getattr(self, key) is not None]
        if len(given) != 1:
            raise placed_error(
                "exactly one of `path`, `url` and `emulated` says what it is",
                (given[1],) if given else (),
            )
        if self.endpoint is not None and self.url is None and self.object_url is None:
            raise placed_error("`endpoint` is of a `url` or an `object_url`", ("endpoint",))
        if self.object_url is not None and self.path is None:
            raise placed_error("`object_url` is what a `path` shows", ("object_url",))
        return self

    @property
    def is_seen_by_all(self) -> bool:
        """Do all nodes see the same files?"""
        if self.is_shared is not None:
            return self.is_shared
        return self._is_behind_link

    @property
    def outlives_node(self) -> bool:
        return self._is_behind_link if self.is_durable is None else self.is_durable

    @property
    def _is_behind_link(self) -> bool:
        if self.emulated is not None:
            return self.emulated.kind in BEHIND_LINK
        return self.url is not None or self.object_url is not None

    @property
    def label(self) -> str:
        """`bucket, s3://bucket/prefix`: what it is, claiming no more."""
        if self.emulated is not None:
            return f"{self.name}, emulated {self.emulated.label}"
        return f"{self.name}, {self.path or self.url}"
