"""What has each workload, whatever runs on the ranks?

What the other rooms ask of a workload without caring which kind it is stands here; what a kind
needs beyond that is told by the registry of the room that needs it (docs/decisions/0013).
"""

from typing import ClassVar, Self

from pydantic import Field

from broadgauge.messages.storage import AskedCache
from broadgauge.specs.base import Name, Spec
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.secrets.variables import EnvironmentVariables
from broadgauge.specs.workloads.gpt import DataType
from broadgauge.specs.workloads.training_config import TrainingConfig


class WorkloadBase(Spec):
    """What each workload has: a name, and the networks it runs on (all, when not named)."""

    networks: tuple[Name, ...] | None = Field(default=None, min_length=1)
    """Names of the networks that it runs on; null: all."""
    platforms: tuple[PlatformKind, ...] | None = None
    """Where it runs, of the experiment's platforms; elsewhere it is left out. Empty: nowhere; null:
    on each."""
    environment: EnvironmentVariables = Field(default_factory=dict)
    """Variables for its ranks; they win over the network's and the experiment's."""

    planned: ClassVar[dict[str, str]] = {"trace": "profiler traces", "storage": "storages"}

    has_steps: ClassVar[bool] = False
    """Does it repeat a step whose time says how fast the job is?"""
    only_communicates: ClassVar[bool] = False
    """Do its ranks do nothing but send and wait? Then one rank has nothing to do, and busy cores
    are the network stack's."""
    is_under_torchrun: ClassVar[bool] = False
    """Is it the user's own script? torchrun starts its ranks, one torchrun a node, and they live
    for one trial."""

    @property
    def named_storages(self) -> tuple[str, ...] | None:
        """Names of the storages that it runs on, one after the other; null: all; empty: on none."""
        return ()

    @property
    def asked_cache(self) -> AskedCache | None:
        """What its reads of a storage are to find in memory; None: nothing is asked of it."""
        return None

    @property
    def writes_text(self) -> bool:
        """Are its files on a storage text, of which a file system can save by compressing?"""
        return False

    @property
    def raw_files_cache(self) -> AskedCache | None:
        """The same of raw files through the page cache, which other phases are held against; None:
        it is none of them."""
        return None

    def is_for(self, platforms: tuple[PlatformKind, ...]) -> bool:
        """Does it run on one of these?"""
        return self.platforms is None or not set(self.platforms).isdisjoint(platforms)

    @property
    def shows_link_rate(self) -> bool:
        """Do its largest messages fill the link as far as it can be filled? Then it says of other
        workloads on the same network what the link carries."""
        return False

    @property
    def all_reduce_bytes(self) -> int:
        """Of its largest all_reduce that shows the link's rate; 0: it has none."""
        return 0

    @property
    def measured_by(self) -> str | None:
        """Which of several programs that can measure it; None: there is one only."""
        return None

    @property
    def batch_tokens(self) -> int | None:
        """How many tokens has a rank at most in a batch, where a `max_batch_len` says it?"""
        return None

    @property
    def model_in_words(self) -> str | None:
        """Which known model is trained, or sends its messages; None: none that has a name."""
        return None

    @property
    def unread_config(self) -> str | None:
        """The path of a file that is read with the experiment; None: there is none, or it is."""
        return None

    def with_config(self, text: str) -> Self:
        """With what the file says in the place of its name. Raises TrainingConfigError."""
        del text
        return self

    @property
    def read_config(self) -> TrainingConfig | None:
        """What that file says."""
        return None

    @property
    def ignored_module(self) -> str | None:
        """What it says is run, where something else is."""
        return None

    @property
    def arithmetic_dtype(self) -> DataType | None:
        """What its model computes in; None: no model of ours computes."""
        return None
