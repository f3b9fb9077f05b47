"""What does NVML say of NVLink: which GPUs does it join, and how much has crossed it?"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

_COUNTERS = (
    ("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 1024),
    ("NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 1),
)
"""Sent, received, and their unit in bytes; older bindings lack the second kind. The first counts
data without protocol up to NVLink 4, the second is NVLink 5's. Source: nvml.h, field values: the
scope of each is a link."""


def sent_and_received_bytes(nvml: Any, handle: Any) -> tuple[int, int] | None:
    """What has left and entered this GPU by NVLink since its driver was loaded.

    None: it has no such counters. Where it has both kinds, those that have counted something.
    """
    kinds = [
        (getattr(nvml, sent), getattr(nvml, received), unit_bytes)
        for sent, received, unit_bytes in _COUNTERS
        if hasattr(nvml, sent) and hasattr(nvml, received)
    ]
    told = [sums for kind in kinds if (sums := _sums_over_links(nvml, handle, kind)) is not None]
    return max(told, default=None)


def _sums_over_links(
    nvml: Any, handle: Any, counters: tuple[int, int, int]
) -> tuple[int, int] | None:
    *fields, unit_bytes = counters
    scopes = [(field, link) for field in fields for link in _links(nvml)]
    try:
        values = nvml.nvmlDeviceGetFieldValues(handle, scopes)
    except nvml.NVMLError:
        return None
    # The call succeeds where any value does; links that are not there have an error each.
    told = [value for value in values if value.nvmlReturn == nvml.NVML_SUCCESS]
    if not told:
        return None
    sent, received = (
        sum(int(value.value.ullVal) for value in told if value.fieldId == field) * unit_bytes
        for field in fields
    )
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
    for link in _links(nvml):
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


def _links(nvml: Any) -> range:
    return range(nvml.NVML_NVLINK_MAX_LINKS)


def _count(nvml: Any) -> int:
    return int(nvml.nvmlDeviceGetCount())


def _text(value: str | bytes) -> str:
    return (value.decode(errors="replace") if isinstance(value, bytes) else value).lower()
