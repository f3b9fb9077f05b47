"""What does a warning speak of, by the source file that printed it?"""

from collections.abc import Iterable

from broadgauge.doctor.log.facts import UnknownWarning
from broadgauge.wording.listing import listed

_SUBJECTS: tuple[tuple[str, str], ...] = (
    *((name, "an external network plugin") for name in ("ofi_", "tcpx", "fastrak", "fastsocket")),
    *((name, "an external network plugin") for name in ("sharp", "ucx", "anp_", "ib_plugin")),
    ("net_ib", "its RDMA network"),
    ("ibvwrap", "its RDMA network"),
    ("ibvsymbols", "its RDMA network"),
    ("socket", "its TCP sockets"),
    ("bootstrap", "how ranks find each other"),
    ("shm", "shared memory"),
    ("p2p", "the ways between GPUs of a node"),
    ("nvls", "NVLink SHARP"),
    ("graph/", "the machine's topology"),
    ("nvml", "the GPU driver"),
    ("proxy", "its proxy thread"),
    ("plugin", "its plugins"),
    ("init", "joining a communicator"),
    ("tuner", "a tuner plugin"),
    ("coll_net", "reductions in the network"),
)
"""Part of the file's or function's name, in small letters → its subject; the first that fits.
Source: folders of NVIDIA/nccl src; aws/aws-ofi-nccl, google/nccl-plugin-gpudirecttcpx,
google/nccl-fastsocket, Mellanox/nccl-rdma-sharp-plugins and ROCm/amd-anp."""
EXTERNAL = "an external network plugin"


def subject_of(origin: str) -> str | None:
    """`transport/net_ib.cc` → its RDMA network; None: not said, or not known."""
    plain = origin.casefold()
    return next((subject for part, subject in _SUBJECTS if part in plain), None)


def subjects_words(warnings: Iterable[UnknownWarning]) -> str:
    """`, of its TCP sockets`; nothing where the lines do not say it."""
    subjects = dict.fromkeys(subject_of(each.origin) for each in warnings)
    named = [subject for subject in subjects if subject is not None]
    return f", of {listed(named)}" if named else ""
