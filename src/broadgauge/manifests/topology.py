"""Is this file one that NCCL reads as a node's topology, and has it the GPUs of a pod?

Which of its devices are in a pod is seen there: what NCCL does not find it leaves out.
Source: NCCL 2.28, src/graph/xml.h (NCCL_TOPO_XML_VERSION) and xml.cc: tags `system`, `cpu`, `pci`,
`gpu`, `nic`, `net`; a `pci` of the class 0x03… is a GPU, one of 0x02… a NIC.
"""

import re
from xml.etree import ElementTree  # only of the user's own file; entities are refused below

from broadgauge.specs.errors import InputError

KEY = "kubernetes.topology_file"
VERSION = "1"
_GPU_CLASS = re.compile(r"0x03[0-9a-fA-F]{4}")
_WRITE_ONE = "NCCL_TOPO_DUMP_FILE=FILE on a node with all of its GPUs and NICs writes one"


def check_topology(content: bytes, path: str, *, num_gpus: int) -> None:
    """Raises InputError."""
    if b"<!ENTITY" in content or b"<!DOCTYPE" in content:
        raise InputError(f"{KEY}: {path} declares entities, which NCCL does not read")
    try:
        system = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise InputError(f"{KEY}: {path} is no XML: {error}", hint=_WRITE_ONE) from error
    if system.tag != "system":
        raise InputError(
            f"{KEY}: {path} begins with <{system.tag}>, and NCCL reads a <system>", hint=_WRITE_ONE
        )
    if system.get("version") != VERSION:
        raise InputError(
            f"{KEY}: {path} is of version {system.get('version', 'none')}, and NCCL reads "
            f'`<system version="{VERSION}">`'
        )
    if not any(child.tag == "cpu" for child in system):
        raise InputError(f"{KEY}: {path} has no <cpu>", hint=_WRITE_ONE)
    gpus = [each for each in system.iter("pci") if _GPU_CLASS.match(each.get("class", ""))]
    if len(gpus) < num_gpus:
        raise InputError(
            f"{KEY}: {path} has {len(gpus)} GPU{'s' * (len(gpus) != 1)}, and a pod's ranks take "
            f"{num_gpus}",
            hint=_WRITE_ONE,
        )
