"""What does a cluster of SkyPilot need to be told, beside the experiment?

SkyPilot's own words stand where it has them, so that a task file can be copied over by hand.
Source: SkyPilot 0.14.1, its schemas of task, resources and storage (`sky.utils.schemas`).
"""

import posixpath
import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from broadgauge.specs.base import Spec, placed_error
from broadgauge.specs.found import Found
from broadgauge.specs.secret_names import is_secret, masked_url, url_secrets
from broadgauge.specs.transports import Transport
from broadgauge.specs.units import RateGbps, TimeS
from broadgauge.specs.variables import VARIABLE_PATTERN, holds_secret

NetworkTier = Literal["standard", "best"]
CLOUD_NETWORK = "cloud"
"""`Found.attachment` of a network of SkyPilot: the nodes' own addresses."""
MAX_IDLE_MINUTES = 24 * 60
_OF_THE_SYSTEM = ("/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sys", "/usr")
_RCLONE_SIZE = r"^[0-9]+[bkmgtpBKMGTP]?$"
_RCLONE_TIME = r"^([0-9]+(\.[0-9]+)?(ms|[smhdwMy]))+$"
_ON_KUBERNETES = re.compile(r"(k8s|kubernetes)(/.*)?", re.IGNORECASE)

RcloneSize = Annotated[str, StringConstraints(pattern=_RCLONE_SIZE, max_length=32)]
RcloneTime = Annotated[str, StringConstraints(pattern=_RCLONE_TIME, max_length=64)]
VariableName = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]


class SkypilotNetwork(Spec):
    """The face of a network on SkyPilot: `networks[].skypilot`. A tier alone may stand for it."""

    network_tier: NetworkTier = "standard"
    """`best`: the fastest that the machine has, InfiniBand or what the cloud has in its place. Each
    tier has a cluster of its own."""
    transport: Transport | None = None
    """What NCCL is to send by; a case that went another way fails. null: whatever it chooses."""
    gpudirect: bool | None = None
    """Does the NIC read and write the GPUs' memory? Of RDMA only. null: as it comes."""
    nominal_gbps: RateGbps | None = None
    """Line rate of each NIC by its data sheet: a label. null: not known."""

    @model_validator(mode="before")
    @classmethod
    def _by_its_tier(cls, value: Any) -> Any:
        return {"network_tier": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _gpudirect_is_of_rdma(self) -> "SkypilotNetwork":
        self.as_found()
        return self

    def as_found(self) -> Found:
        """What a case keeps of it."""
        return Found(
            attachment=CLOUD_NETWORK,
            network_tier=self.network_tier,
            transport=self.transport,
            gpudirect=self.gpudirect,
            nominal_gbps=self.nominal_gbps,
        )


AnySkypilotNetwork = Annotated[SkypilotNetwork, BeforeValidator(SkypilotNetwork._by_its_tier)]
"""Text alone is its tier."""


class MountCached(Spec):
    """Of a mount with a cache: flags of rclone, in rclone's words. null: SkyPilot's default."""

    transfers: int | None = Field(default=None, ge=1, le=1024)
    """How many files are uploaded at once."""
    buffer_size: RcloneSize | None = None
    """Memory of each open file: `64M`."""
    vfs_cache_max_size: RcloneSize | None = None
    """Of the cache on the disk: `200G`. It should hold a model and a checkpoint."""
    vfs_cache_max_age: RcloneTime | None = None
    """How long a file stays in it: `1h`."""
    vfs_read_ahead: RcloneSize | None = None
    """Read beyond what was asked for."""
    vfs_read_chunk_size: RcloneSize | None = None
    """Of each request to the store."""
    vfs_read_chunk_streams: int | None = Field(default=None, ge=0, le=1024)
    """How many such requests at once."""
    vfs_write_back: RcloneTime | None = None
    """How long after it was closed a file's upload begins."""
    read_only: bool | None = None
    """Nothing is written through it."""


class FileMount(Spec):
    """What a path of every node holds. Text alone is its `source`, copied."""

    source: str = Field(min_length=1, max_length=1024)
    """`s3://bucket/path`, another store's URL, or a path here."""
    mode: Literal["MOUNT", "MOUNT_CACHED", "COPY"] = "COPY"
    """`MOUNT`: reads and writes go to the store. `MOUNT_CACHED`: to the node's disk first, and are
    uploaded later. `COPY`: it is copied to the disk before anything runs."""
    store: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_]{1,32}$")
    """Whose store it is, where the URL does not tell: `s3`, `gcs`, `nebius`, …"""
    mount_cached: MountCached | None = None
    """Of `MOUNT_CACHED`; null: SkyPilot's defaults."""

    @model_validator(mode="before")
    @classmethod
    def _by_its_source(cls, value: Any) -> Any:
        return {"source": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parts_fit(self) -> "FileMount":
        if self.mount_cached is not None and self.mode != "MOUNT_CACHED":
            raise placed_error("`mount_cached` is of `mode: MOUNT_CACHED`", ("mount_cached",))
        if self.mode != "COPY" and "://" not in self.source:
            raise placed_error(
                f"`{self.source}` is no bucket: only those are mounted",
                ("source",),
                "`s3://bucket`, or `mode: COPY`",
            )
        if found := url_secrets(self.source):
            raise placed_error(
                f"`{masked_url(self.source)}` has credentials in its URL ({', '.join(found)}), and "
                "the task file would show them",
                ("source",),
                "SkyPilot uses the cloud's own credentials: `sky check`",
            )
        return self


AnyFileMount = Annotated[FileMount, BeforeValidator(FileMount._by_its_source)]


def _check_path(path: str) -> str:
    plain = "/" + posixpath.normpath(path).lstrip("/")
    if plain in _OF_THE_SYSTEM or plain.startswith(("/proc/", "/sys/")):
        raise ValueError(f"`{plain}` hides what every program needs")
    return path


def _check_variable(name: str) -> str:
    if name.startswith("SKYPILOT_"):
        raise ValueError("variables that begin with SKYPILOT_ are SkyPilot's own")
    return name


OwnPath = Annotated[
    str, StringConstraints(pattern=r"^/[^\x00:]{0,1023}$"), AfterValidator(_check_path)
]
OwnVariable = Annotated[VariableName, AfterValidator(_check_variable)]


class Skypilot(Spec):
    """SkyPilot's side of an experiment: which machines, what is on them, and how much they may
    cost."""

    infra: str | None = Field(default=None, pattern=r"^[A-Za-z*][A-Za-z0-9_./:*-]{0,253}$")
    """`nebius`, `aws/us-east-1`, …; null: the cheapest that SkyPilot finds and you have access to.
    """
    accelerators: str | None = Field(
        default=None, pattern=r"^[A-Za-z][A-Za-z0-9.-]{0,62}(:[1-9][0-9]{0,2})?$"
    )
    """Of each node, `H100:8`; null: CPUs compute."""
    instance_type: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,126}$")
    """Of each node, as the cloud names it; null: SkyPilot's choice."""
    cpus: str | None = Field(default=None, pattern=r"^[1-9][0-9]{0,4}\+?$")
    """Of each node: `16`, or `16+` for at least so many. null: SkyPilot's choice."""
    memory: str | None = Field(default=None, pattern=r"^[1-9][0-9]{0,5}\+?$")
    """GiB of each node: `64`, or `64+`. null: SkyPilot's choice."""
    disk_tier: Literal["low", "medium", "high", "ultra", "best"] | None = None
    """Of the nodes' own disks. null: `medium`."""
    disk_size: int | None = Field(default=None, ge=1, le=1_000_000)
    """GB of a node's own disk. null: 256."""
    image_id: str | None = Field(default=None, pattern=r"^\S{1,512}$")
    """The machine's image, or `docker:…`; null: SkyPilot's."""
    use_spot: bool = False
    """Machines that may be taken away at any time, for less. What is measured then stays; the run
    stops, and `run --resume` goes on."""
    workdir: str | None = Field(default=None, min_length=1, max_length=1024)
    """Folder here that is sent to the nodes, from the experiment's; commands run in it. null: none,
    and commands run in the home folder."""
    python: str = Field(default="python3", min_length=1, max_length=1024)
    """On the nodes, after `setup`: the Python that has torch."""
    install: str = Field(default="pip install 'broadgauge[torch]'", min_length=1, max_length=4096)
    """Of rendered tasks, which run without this machine: the command that brings Broadgauge and
    torch into that Python. `run` brings Broadgauge along, and needs torch alone."""
    secrets: tuple[OwnVariable, ...] = Field(default=(), max_length=64)
    """Names of variables of `setup` whose values are taken from your environment at launch, and
    stand in no file."""
    envs: dict[OwnVariable, str] = Field(default_factory=dict)
    """Variables of `setup`. Those of ranks are the experiment's `environment`."""
    file_mounts: dict[OwnPath, AnyFileMount] = Field(default_factory=dict)
    """By the path on every node."""
    volumes: dict[OwnPath, str] = Field(default_factory=dict)
    """Names of SkyPilot's volumes (`sky volumes ls`), by the path on every node: a shared file
    system, a claim."""
    setup: str | None = Field(default=None, min_length=1, max_length=65_536)
    """Shell commands that every node runs once, before anything is measured."""
    idle_minutes: int = Field(default=10, ge=1, le=MAX_IDLE_MINUTES)
    """So long after the last that it did, a cluster brings itself down, whatever became of this
    machine."""
    results: OwnPath | None = None
    """Of rendered tasks: a path of `file_mounts` or `volumes` that run folders are copied to before
    the cluster is gone. null: they are on its first node alone. `run` collects them by itself."""
    keep_s: TimeS = 1800.0
    """How long a cluster that has measured everything waits for the tool to collect it."""
    max_cost_usd: float | None = Field(default=None, gt=0, le=1e7)
    """What all clusters of the run may cost, by the price below: each is told how long that lasts,
    and ends by itself then. null: no limit but `max_held_s`."""
    max_held_s: TimeS = 86_400.0
    """How long one cluster may be held, whatever it costs."""

    planned: ClassVar[dict[str, str]] = {}

    @property
    def gpus_per_node(self) -> int:
        """Of the accelerators that are named; 0: none are."""
        if self.accelerators is None:
            return 0
        _, found, number = self.accelerators.partition(":")
        return int(number) if found else 1

    @property
    def accelerator(self) -> str | None:
        """Which kind."""
        return None if self.accelerators is None else self.accelerators.partition(":")[0]

    @property
    def unread_results_kept(self) -> str:
        """How long are results there that the tool has not read?"""
        return (
            f"{self.keep_s / 60:.3g} min after its end the cluster lets go, and is gone with what "
            "it measured (`skypilot.keep_s`): go on before"
        )

    @property
    def is_on_kubernetes(self) -> bool:
        """Are the nodes pods, which are reached in another way than machines?"""
        return self.infra is not None and _ON_KUBERNETES.fullmatch(self.infra) is not None

    @model_validator(mode="after")
    def _hold_no_secret(self) -> "Skypilot":
        for name, value in self.envs.items():
            if holds_secret(name, value):
                raise placed_error(
                    f"`{name}` is a secret, and the task file would show it",
                    ("envs", name),
                    f"`secrets: [{name}]`, with its value in your environment",
                )
        for name in set(self.envs) & set(self.secrets):
            raise placed_error(f"`{name}` stands among `secrets`, too", ("envs", name))
        for key in ("setup", "install"):
            for word in (getattr(self, key) or "").split():
                name, mark, value = word.strip("'\"").partition("=")
                is_literal = mark and value and not value.startswith("$")
                if (is_literal and is_secret(name)) or url_secrets(word):
                    raise placed_error(
                        f"`{key}` holds a secret (`{name if mark else masked_url(word)}`), and the "
                        "task file would show it",
                        (key,),
                        "name it in `secrets`, and use `$NAME` here",
                    )
        return self

    @model_validator(mode="after")
    def _results_are_kept(self) -> "Skypilot":
        kept = {path for path, mount in self.file_mounts.items() if mount.mode != "COPY"}
        known = sorted({*kept, *self.volumes})
        if self.results is not None and not any(
            f"{self.results}/".startswith(f"{path.rstrip('/')}/") for path in known
        ):
            raise placed_error(
                f"`{self.results}` is in nothing that outlives the cluster",
                ("results",),
                f"a path in {', '.join(known) or 'a mount of `file_mounts`, or in `volumes`'}",
            )
        return self

    @model_validator(mode="after")
    def _paths_are_apart(self) -> "Skypilot":
        for path in self.volumes:
            if path.rstrip("/") in {each.rstrip("/") for each in self.file_mounts}:
                raise placed_error(f"`{path}` is among `file_mounts`, too", ("volumes", path))
        return self
