"""What does NVML say of NVLink: which GPUs does it join, and how much has crossed it?"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

_ALL_LINKS = 2**32 - 1
"""As the scope of a field: the sum over a GPU's links. Source: nvml.h, "NVLink throughput counters
field values"; they count data without protocol, in KiB."""
_KIB = 1024


def sent_and_received_bytes(nvml: Any, handle: Any) -> tuple[int, int] | None:
    """Data bytes that have left and entered this GPU by NVLink since its driver was loaded.

    None: it has no such counters.
    """
    fields = (
        nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
    )
    try:
        values = nvml.nvmlDeviceGetFieldValues(handle, [(field, _ALL_LINKS) for field in fields])
    except nvml.NVMLError:
        return None
    if any(value.nvmlReturn != nvml.NVML_SUCCESS for value in values):
        return None
    sent, received = (int(value.value.ullVal) * _KIB for value in values)
    return sent, received


def are_joined(nvml: Any, handles: Sequence[Any]) -> bool | None:
    """Does active NVLink join any two of these GPUs? None: NVML does not say."""
    answers = [_is_pair_joined(nvml, *pair) for pair in combinations(handles, 2)]
    if any(answers):
        return True
    return None if not answers or None in answers else False


def _is_pair_joined(nvml: Any, one: Any, other: Any) -> bool | None:
    """By NVML's peer-to-peer matrix, or by the far ends of the links: each other, or a switch."""
    status: int | None = None
    with suppress(nvml.NVMLError):
        status = nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
    if status == nvml.NVML_P2P_STATUS_OK:
        return True
    ends, others_ends = _far_ends(nvml, one), _far_ends(nvml, other)
    if ends is None or others_ends is None:
        return None if status is None else False
    if _bus_id(nvml, other) in ends:
        return True
    gpus = {_bus_id(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(_count(nvml))}
    return bool((ends & others_ends) - gpus)


def _far_ends(nvml: Any, handle: Any) -> set[str] | None:
    """PCI bus ids of what this GPU's active links lead to; None: it has no links to ask about."""
    found: set[str] = set()
    is_known = False
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            is_active = nvml.nvmlDeviceGetNvLinkState(handle, link)
            is_known = True
            if is_active:
                found.add(_text(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId))
        except nvml.NVMLError:
            continue
    return found if is_known else None


def _bus_id(nvml: Any, handle: Any) -> str:
    return _text(nvml.nvmlDeviceGetPciInfo(handle).busId)


def _count(nvml: Any) -> int:
    return int(nvml.nvmlDeviceGetCount())


def _text(value: str | bytes) -> str:
    return (value.decode(errors="replace") if isinstance(value, bytes) else value).lower()
