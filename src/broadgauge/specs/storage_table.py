"""What is known of storages by phase of a training, and what does the user need of them?

A file for `broadgauge advise`:

    storages:
      - {name: nfs, is_durable: true, batch_loading_s: 4.3, model_loading_s: 30 s,
         checkpoint_stall_s: 6 min, time_to_durable_s: 6 min}
      - {name: cached, store: bucket, is_durable: true, model_loading_s: 104 s,
         checkpoint_stall_s: 212 s, time_to_durable_s: 15 min}
    job: {samples: 100_000, loads: 1, saves: 24, length_s: 24 h}
    needs: {lose_at_most_s: 90 min}
"""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from broadgauge.specs.base import Name, Spec, did_you_mean, placed_error
from broadgauge.specs.units import parse_size_bytes, parse_time_s

SAMPLES_OF_A_FIGURE = 100
"""Source: the unit of the article's batch loading, catalog/articles.yaml."""
MOST_STORAGES = 60
"""Every way to give three phases a storage is looked at: 60³ are 216,000."""
PhaseTimeS = Annotated[float, BeforeValidator(parse_time_s), Field(ge=0, le=30 * 86_400)]
"""0: too short to be seen."""
LongTimeS = Annotated[float, BeforeValidator(parse_time_s), Field(gt=0, le=10 * 366 * 86_400)]
StoredBytes = Annotated[int, BeforeValidator(parse_size_bytes), Field(gt=0, le=2**60)]
"""Up to an exbibyte: file systems and data sets are larger than what a collective sends."""


class StoragePhase(StrEnum):
    """What a training wants of a storage."""

    BATCH_LOADING = "batch_loading"
    MODEL_LOADING = "model_loading"
    CHECKPOINT_SAVING = "checkpoint_saving"


class ResumeReading(StrEnum):
    """What must a resumed training find where the model is loaded from?"""

    SAME_STORE = "same_store"
    """Its checkpoints: both are kept in one store, by whichever mounts."""
    SAME_MOUNT = "same_mount"
    """Its checkpoints, by the same mount."""
    ANYWHERE = "anywhere"
    """Checkpoints are read from where they were saved, the model from elsewhere."""


class StorageFigures(Spec):
    """One storage as the nodes see it: how long training waits for it, by phase."""

    name: Name
    store: Name | None = None
    """Where its bytes rest; two mounts of one bucket have one store. None: a store of its own."""
    is_durable: bool
    """What is stored outlives the node."""
    batch_loading_s: PhaseTimeS | None = None
    """For 100 samples, as training waits for them; None: not known."""
    batch_cache: Literal["cold", "warm", "unknown"] = "unknown"
    """Were the batches read from the storage, or had memory kept them?"""
    model_loading_s: PhaseTimeS | None = None
    checkpoint_stall_s: PhaseTimeS | None = None
    """How long training waits for one save."""
    time_to_durable_s: PhaseTimeS | None = None
    """From the begin of a save until it outlives the node; None: not known."""
    room_bytes: StoredBytes | None = None
    """What it holds; None: more than is asked."""
    price_usd_per_hour: float = Field(default=0.0, ge=0, le=1e6)
    """US dollars for each hour that it is there."""

    @property
    def kept_in(self) -> str:
        return self.store or self.name

    def phase_s(self, phase: StoragePhase) -> float | None:
        """Of 100 samples, of one load or of one save; None: not known."""
        return {
            StoragePhase.BATCH_LOADING: self.batch_loading_s,
            StoragePhase.MODEL_LOADING: self.model_loading_s,
            StoragePhase.CHECKPOINT_SAVING: self.checkpoint_stall_s,
        }[phase]


class StorageJob(Spec):
    """How often each phase comes in a stretch of training."""

    samples: int = Field(default=SAMPLES_OF_A_FIGURE, ge=0, le=10**15)
    loads: int = Field(default=1, ge=0, le=10**6)
    """Starts: the first, and one after each failure."""
    saves: int = Field(default=1, ge=0, le=10**6)
    length_s: LongTimeS | None = None
    """How long the stretch is; None: not told, so no share of it can be."""
    mean_time_between_failures_s: LongTimeS | None = None
    gpus: int | None = Field(default=None, ge=1, le=10**6)
    usd_per_gpu_hour: float | None = Field(default=None, ge=0, le=1e6)
    data_bytes: StoredBytes | None = None
    model_bytes: StoredBytes | None = None
    checkpoint_bytes: StoredBytes | None = None
    kept_checkpoints: int = Field(default=1, ge=1, le=10**6)
    memory_bytes: StoredBytes | None = None
    """Of a node: data that fits there is read once."""

    def times(self, phase: StoragePhase) -> float:
        """How often the figure of this phase is paid."""
        return {
            StoragePhase.BATCH_LOADING: self.samples / SAMPLES_OF_A_FIGURE,
            StoragePhase.MODEL_LOADING: float(self.loads),
            StoragePhase.CHECKPOINT_SAVING: float(self.saves),
        }[phase]

    def bytes_of(self, phase: StoragePhase) -> int | None:
        """What the storage of this phase has to hold; None: not told."""
        if phase is StoragePhase.CHECKPOINT_SAVING:
            size = self.checkpoint_bytes
            return None if size is None else size * self.kept_checkpoints
        return self.data_bytes if phase is StoragePhase.BATCH_LOADING else self.model_bytes


class StorageNeeds(Spec):
    """What no choice may violate."""

    durable_checkpoints: bool = True
    durable_data: bool = True
    """The data set need not be fetched again for a new node."""
    resume_from: ResumeReading = ResumeReading.SAME_STORE
    lose_at_most_s: LongTimeS | None = None
    """Of training, when a node is lost: a save's interval and its time to durable."""
    most_usd_per_hour: float | None = Field(default=None, ge=0, le=1e9)


class StorageOfPhase(Spec):
    """The name of a storage for each phase; None: none."""

    batch_loading: Name | None = None
    model_loading: Name | None = None
    checkpoint_saving: Name | None = None

    def names(self) -> dict[StoragePhase, str]:
        found = {
            StoragePhase.BATCH_LOADING: self.batch_loading,
            StoragePhase.MODEL_LOADING: self.model_loading,
            StoragePhase.CHECKPOINT_SAVING: self.checkpoint_saving,
        }
        return {phase: name for phase, name in found.items() if name is not None}


class StorageTable(Spec):
    """All that `advise` chooses by."""

    storages: tuple[StorageFigures, ...] = Field(min_length=1, max_length=MOST_STORAGES)
    job: StorageJob = StorageJob()
    needs: StorageNeeds = StorageNeeds()
    now: StorageOfPhase = StorageOfPhase()
    """What is used today, to compare with."""
    note: str | None = None

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [each.name for each in self.storages]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise placed_error(f"two storages are named `{name}`", ("storages", i, "name"))
        for phase, name in self.now.names().items():
            if name not in names:
                hint = did_you_mean(name, names) or f"one of {', '.join(names)}"
                raise placed_error(f"no storage is named `{name}`", ("now", phase.value), hint)
        return self

    def storage(self, name: str) -> StorageFigures:
        return next(each for each in self.storages if each.name == name)
