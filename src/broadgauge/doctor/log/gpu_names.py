"""Which GPUs does a program of the job name, and are they made for data centres?

nccl-tests lists its devices, `nvidia-smi` and scripts print the driver's names: `NVIDIA H100 80GB
HBM3`, `Tesla V100-SXM2-32GB`, `AMD Instinct MI300X`.
"""

import re
from dataclasses import dataclass, field

TRIGGERS = (b"NVIDIA ", b"Tesla V", b"Tesla P", b"AMD Instinct ")
MOST_NAMES = 16
_NAMED = re.compile(
    r"\b(?:NVIDIA |Tesla |AMD Instinct )(?P<model>(?:GeForce |RTX |Quadro |Graphics Device)?"
    r"[A-Z]{0,5}\d{1,4}[\w-]{0,24}(?: (?:\d{2,3}GB|HBM\w*|PCIe|NVL|SXM\d?|Ti|SUPER|Ada))*)"
)
_DATA_CENTRE = re.compile(
    r"(?<![A-Za-z0-9])(?:[ABHV][1-8]00|H20|A[1-4]0G?|P[14]00?|T4|L4|L40S?|L20|B[23]00|GB[23]00|"
    r"GH200|MI[1-9]\d\d[A-Z]?)(?![0-9])",
    re.IGNORECASE,
)
_OF_DESKS = re.compile(r"geforce|quadro|rtx|gtx|titan", re.IGNORECASE)


@dataclass(slots=True)
class GpuNames:
    """Takes in lines that may name one."""

    names: set[str] = field(default_factory=set)

    def take(self, text: str) -> None:
        match = _NAMED.search(text)
        if match is not None and len(self.names) < MOST_NAMES:
            self.names.add(match.group().strip())


def is_of_data_centre(name: str) -> bool:
    """Does such a GPU stand in servers with NICs to match? `NVIDIA H100 80GB HBM3`, `h100-sxm`."""
    return _OF_DESKS.search(name) is None and _DATA_CENTRE.search(name) is not None
