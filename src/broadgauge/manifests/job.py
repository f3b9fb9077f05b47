"""What must be known to render one job? All of it: nothing is read from here on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broadgauge.manifests.interfaces import Attachments
from broadgauge.manifests.memory_need import MemoryNeed
from broadgauge.manifests.prepared import Preparation
from broadgauge.specs.case import Case
from broadgauge.specs.kubernetes.pod_volumes import Volume
from broadgauge.specs.kubernetes.settings import JobKind, Kubernetes, SecretRef

SHM_PER_RANK_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPods:
    """The pods of one job, and what they find, whatever runs in them."""

    name: str
    """Of the job: a DNS label."""
    prefix: str
    """With which the names begin of what its pods share with others."""
    experiment: str
    """Its word, as a label."""
    marks: Mapping[str, str]
    """Labels by which its own objects and pods are told from all others of the experiment."""
    shared_marks: Mapping[str, str] = field(default_factory=dict)
    """Further labels of what is attached or mounted from outside of it: networks, maps. Empty: it
    is the experiment's, and outlives the job."""
    kind: JobKind
    settings: Kubernetes
    num_pods: int
    """One a node."""
    ranks_per_pod: int
    """The most that ever run in one."""
    gpus_per_pod: int
    """0: CPUs compute."""
    volumes: tuple[Volume, ...]
    """Of the experiment's, those that its pods mount."""
    secrets: Mapping[str, SecretRef]
    """Variables of the ranks by reference, by name."""
    program: bytes
    """The zip file that pods run."""
    files: Mapping[str, bytes]
    """The user's, by path below the experiment's folder."""
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
    def num_gpus(self) -> int:
        """Of all pods together."""
        return self.num_pods * self.gpus_per_pod

    @property
    def shm_bytes(self) -> int:
        """Of /dev/shm. A container has 64 MiB of its own accord, which NCCL and loaders exceed."""
        return self.settings.shm_bytes or SHM_PER_RANK_BYTES * self.ranks_per_pod


@dataclass(frozen=True, slots=True, kw_only=True)
class PodJob(JobPods):
    """A job whose pods run one case, with nobody who leads them."""

    word: str
    """Of the case, in names and paths: `train-pod-2x8`."""
    case: Case
    launches: int
    """How often the ranks are started, one after another."""
    arguments: tuple[str, ...]
    """What each torchrun is given: the user's command, or our own program."""
    told: bytes
    """The case and its task, as our own program reads them (JSON); it holds no secret."""
    subfolder: str
    """Below that of the user's files, where the command runs; empty: that folder itself."""
    environment: Mapping[str, str]
    """Variables of the ranks that are no secrets."""


def gpus_of(settings: Kubernetes, case: Case) -> int:
    """That each pod of this case holds; 0: CPUs compute."""
    return 0 if case.device == "cpu" else settings.gpus_per_pod or case.ranks_per_node
