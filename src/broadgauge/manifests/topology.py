"""Is this file one that NCCL reads as a node's topology, and has it the GPUs of a pod?

Which of its devices are in a pod is seen there: what NCCL does not find it leaves out.
Source: NCCL 2.28, src/graph/xml.h (NCCL_TOPO_XML_VERSION) and xml.cc: tags `system`, `cpu`, `pci`,
`gpu`, `nic`, `net`; a `pci` of the class 0x03… is a GPU, one of 0x02… a NIC. It reads bytes, and
the first is `<`; what is in no `cpu` it does not reach; of two with one `busid` it finds the first.
"""

import codecs
import re
from collections.abc import Iterable
from xml.etree import ElementTree  # only of the user's own file; entities are refused below

from broadgauge.specs.errors import InputError

KEY = "kubernetes.topology_file"
VERSION = "1"
_GPU_CLASS = re.compile(r"0x03[0-9a-fA-F]{4}")
_WRITE_ONE = "NCCL_TOPO_DUMP_FILE=FILE on a node with all of its GPUs and NICs writes one"


def check_topology(content: bytes, path: str, *, num_gpus: int) -> None:
    """Raises InputError."""
    text = _decoded(content, path)
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise InputError(f"{KEY}: {path} declares entities, which NCCL does not read")
    try:
        system = ElementTree.fromstring(text)  # as UTF-8, whatever it says of itself
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
    cpus = system.findall("cpu")
    if not cpus:
        raise InputError(f"{KEY}: {path} has no <cpu>", hint=_WRITE_ONE)
    _refuse_doubles(system, path)
    here = sum(map(_num_gpus, cpus))
    if here < num_gpus:
        outside = _num_gpus(system) - here
        beside = f" (and {outside} in no <cpu>, where it does not look)" if outside else ""
        raise InputError(
            f"{KEY}: {path} has {here} GPU{'s' * (here != 1)}{beside}, and a pod's ranks take "
            f"{num_gpus}",
            hint=_WRITE_ONE,
        )


def _decoded(content: bytes, path: str) -> str:
    """Raises InputError for what is text in another encoding, as UTF-16, where NCCL sees none."""
    hint = "save it as UTF-8 without a byte order mark"
    if content.startswith(codecs.BOM_UTF8):
        raise InputError(f"{KEY}: {path} begins with a byte order mark, not with `<`", hint=hint)
    try:
        text = content.decode()
        if "\0" in text:
            raise InputError(
                f"{KEY}: {path} is no UTF-8 text: byte {text.index(chr(0))} is 0", hint=hint
            )
    except UnicodeDecodeError as error:
        raise InputError(
            f"{KEY}: {path} is no UTF-8 text: {error.reason}, byte {error.start}", hint=hint
        ) from error
    return text


def _num_gpus(part: ElementTree.Element) -> int:
    return sum(1 for each in part.iter("pci") if _GPU_CLASS.match(each.get("class", "")))


def _refuse_doubles(parts: Iterable[ElementTree.Element], path: str) -> None:
    """`parts`: of the system. One of several hosts (MNNVL) tells theirs apart by `host_hash`."""
    known: set[tuple[str | None, str]] = set()
    for part in parts:
        for each in part.iter("pci"):
            busid = each.get("busid", "").lower()
            place = (part.get("host_hash"), busid)
            if busid and place in known:
                raise InputError(
                    f"{KEY}: {path} has two <pci> of the busid {busid}, and NCCL finds the first",
                    hint=_WRITE_ONE,
                )
            known.add(place)
