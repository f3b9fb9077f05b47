"""Which node of the job is this pod, and where is what it needs? From its variables alone.

Each job kind numbers its pods by a variable of its own; ours, where it is set, comes first.
Source: Kubernetes, "Job completion index"; Kubeflow training-operator 1.9 and trainer 2.1, the
environment of PyTorchJob's and TrainJob's pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

NUMBERS = ("BROADGAUGE_NODE", "PET_NODE_RANK", "JOB_COMPLETION_INDEX", "RANK")
DEFAULT_PORT = 29510
DEFAULT_MEET_S = 900.0
"""For the other pods to come up: the tool gives up before that where they can't."""
DEFAULT_PREFLIGHT_S = 30.0
DEFAULT_LINGER_S = 180.0
"""A new order reaches a pod's folder within a minute or two."""


class NoPlaceError(ValueError):
    """A variable that the manifest sets is missing, or is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlace:
    """What a pod was started with."""

    number: int
    """Of its node in the job."""
    leader_address: str
    leader_port: int
    own_address: str
    """On the pod network; of the first pod's the ranks' rendezvous."""
    node_name: str
    pod_name: str
    token: str = field(repr=False)
    scratch: Path
    """Writable; goes with the pod."""
    orders: Path
    files: Path
    """The user's, read-only."""
    working_folder: Path | None
    """Of the image or of a volume; None: a copy of `files`."""
    results: Path | None
    """Folder on a volume that keeps what the leader is told; None: its log alone has it."""
    annotations: Path
    meet_s: float
    linger_s: float
    preflight_s: float
    """For the check of all pairs; 0: none."""

    @property
    def leads(self) -> bool:
        """Does the leader run beside this agent?"""
        return self.number == 0


def place_of(environment: Mapping[str, str]) -> PodPlace:
    """Raises NoPlaceError."""
    root = Path(environment.get("BROADGAUGE_FOLDER", "/broadgauge"))
    folder = environment.get("BROADGAUGE_WORKING_FOLDER")
    results = environment.get("BROADGAUGE_RESULTS")
    return PodPlace(
        number=_number(environment),
        leader_address=_needed(environment, "BROADGAUGE_LEADER"),
        leader_port=int(_seconds(environment, "BROADGAUGE_LEADER_PORT", DEFAULT_PORT)),
        own_address=_needed(environment, "BROADGAUGE_POD_IP"),
        node_name=environment.get("BROADGAUGE_NODE_NAME", "unknown"),
        pod_name=environment.get("BROADGAUGE_POD_NAME", environment.get("HOSTNAME", "unknown")),
        token=_needed(environment, "BROADGAUGE_TOKEN"),
        scratch=root / "scratch",
        orders=root / "orders",
        files=root / "files",
        working_folder=Path(folder) if folder else None,
        results=Path(results) if results else None,
        annotations=root / "podinfo" / "annotations",
        meet_s=_seconds(environment, "BROADGAUGE_MEET_S", DEFAULT_MEET_S),
        linger_s=_seconds(environment, "BROADGAUGE_LINGER_S", DEFAULT_LINGER_S),
        preflight_s=_seconds(environment, "BROADGAUGE_PREFLIGHT_S", DEFAULT_PREFLIGHT_S),
    )


def _number(environment: Mapping[str, str]) -> int:
    for name in NUMBERS:
        text = environment.get(name)
        if text is not None and text.isdecimal():
            return int(text)
    raise NoPlaceError(f"which node of the job is this? None of {', '.join(NUMBERS)} is a number")


def _needed(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise NoPlaceError(f"the variable {name} is not set: is this a pod of Broadgauge's?")
    return value


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise NoPlaceError(f"the variable {name} is no number: {text!r}") from None
