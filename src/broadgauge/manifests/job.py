"""What must be known to render one job? All of it: nothing is read from here on."""

from collections.abc import Mapping
from dataclasses import dataclass

from broadgauge.manifests.interfaces import Attachments
from broadgauge.manifests.memory_need import MemoryNeed
from broadgauge.manifests.prepared import Preparation
from broadgauge.specs.case import Case
from broadgauge.specs.kubernetes import JobKind, Kubernetes, SecretRef
from broadgauge.specs.pod_volumes import Volume

SHM_PER_RANK_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PodJob:
    """The pods that run one case, and what they find."""

    prefix: str
    """With which the names of all of the experiment's objects begin."""
    word: str
    """Of the case, in names and paths: `train-pod-2x8`."""
    case: Case
    kind: JobKind
    settings: Kubernetes
    launches: int
    """How often the ranks are started, one after another."""
    arguments: tuple[str, ...]
    """What each torchrun is given: the user's command, or our own program."""
    told: bytes
    """The case and its task, as our own program reads them (JSON); it holds no secret."""
    program: bytes
    """The zip file that pods run."""
    files: Mapping[str, bytes]
    """The user's, by path below the experiment's folder."""
    subfolder: str
    """Below that folder, where the command runs; empty: the folder itself."""
    environment: Mapping[str, str]
    """Variables of the ranks that are no secrets."""
    cpus: float | None
    """Of each pod, where the experiment says it or CPUs compute; None: nobody says."""
    memory_need: MemoryNeed
    """Of each pod, as far as the memory model knows it."""
    attachments: Attachments
    """What its pods are given for their networks."""
    needs_locked_memory: bool
    """Is one of these networks meant as RDMA, which pins memory?"""
    address_map: bytes | None
    """The file by which an init container sets the addresses of NICs; None: no NIC needs it."""
    topology: bytes | None
    """NCCL's topology file; None: NCCL reads the PCI buses that a pod sees."""
    preparation: Preparation | None = None
    """What its pods wait for, and find on a volume; None: all is there."""

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """Of the experiment's, those that this case's pods mount."""
        return self.settings.volumes_of(self.case.workload.name)

    @property
    def secrets(self) -> dict[str, SecretRef]:
        """Of the experiment's, those that this case's ranks have, by variable."""
        return self.settings.secrets_of(self.case.workload.name)

    @property
    def name(self) -> str:
        """Of the job: a DNS label."""
        return f"{self.prefix}-{self.word}"

    @property
    def num_pods(self) -> int:
        """One a node."""
        return self.case.nodes

    @property
    def ranks_per_pod(self) -> int:
        return self.case.ranks_per_node

    @property
    def gpus_per_pod(self) -> int:
        """0: CPUs compute."""
        if self.case.device == "cpu":
            return 0
        return self.settings.gpus_per_pod or self.ranks_per_pod

    @property
    def num_gpus(self) -> int:
        """Of all pods together."""
        return self.num_pods * self.gpus_per_pod

    @property
    def shm_bytes(self) -> int:
        """Of /dev/shm. A container has 64 MiB of its own accord, which NCCL and loaders exceed."""
        return self.settings.shm_bytes or SHM_PER_RANK_BYTES * self.ranks_per_pod
