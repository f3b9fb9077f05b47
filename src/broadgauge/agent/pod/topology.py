"""Is NCCL's topology file of this machine? Its GPUs and NICs are held against the PCI bus.

NCCL leaves out what it does not find, without a word, and one of another instance type then says
nothing of this one. Source: NCCL 2.28, src/graph/xml.cc (`pci` with `busid` and `class`) and
ncclTopoTrimXml.
"""

import re
from collections.abc import Collection, Iterator
from xml.etree import ElementTree

_CLASSES = {"0x03": "GPU", "0x02": "NIC"}
_MOST_NAMED = 4
_BUSID = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


def topology_words(content: bytes, here: Collection[str]) -> str:
    """What of the file is here. `here`: names of /sys/bus/pci/devices."""
    try:
        listed = list(_devices(ElementTree.fromstring(content)))
    except ElementTree.ParseError as error:
        return f"is no XML, so that NCCL refuses it: {error}"
    known = {each.lower() for each in here}
    words = []
    for kind in _CLASSES.values():
        own = [busid for what, busid in listed if what == kind]
        absent = [busid for busid in own if busid not in known]
        words.append(f"{len(own) - len(absent)} of {len(own)} {kind}s are here")
        if absent:
            shown = ", ".join(absent[:_MOST_NAMED]) + ("…" if len(absent) > _MOST_NAMED else "")
            words[-1] += f" (not {shown})"
    if listed and not any(busid in known for _, busid in listed):
        words.append("so that it is another machine's, and says nothing of this one")
    return "; ".join(words)


def _devices(system: "ElementTree.Element") -> Iterator["tuple[str, str]"]:
    for each in system.iter("pci"):
        kind = _CLASSES.get(each.get("class", "")[:4])
        busid = each.get("busid", "").lower()
        if kind is not None and _BUSID.fullmatch(busid):
            yield kind, busid
