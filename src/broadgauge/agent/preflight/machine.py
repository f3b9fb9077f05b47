"""Which software would ranks find here, and in what state are the GPUs?"""

import platform

from broadgauge.agent.facts import version_here
from broadgauge.agent.nvidia_smi import NVIDIA_SMI_LIMIT_S, ask_nvidia_smi, cells_of
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.messages.preflight import GpuState, SoftwareHere

_SLOWED = {
    "hardware": "hw_slowdown",
    "heat": "hw_thermal_slowdown",
    "heat (driver)": "sw_thermal_slowdown",
    "power brake": "hw_power_brake_slowdown",
}
_FIELDS = (
    *("index", "name", "memory.total", "memory.used", "ecc.errors.uncorrected.volatile.total"),
    *("remapped_rows.pending", "remapped_rows.failure", "mig.mode.current"),
    *(f"clocks_throttle_reasons.{name}" for name in _SLOWED.values()),
)
"""Source: nvidia-smi --help-query-gpu. Newer drivers call the last four `clocks_event_reasons` and
take these names too."""
_YES_NO = {"yes": True, "1": True, "no": False, "0": False}
_ON_OFF = {"enabled": True, "disabled": False}
_MIB = 2**20


def software_here(hardware: HardwareFacts, limit_s: float = NVIDIA_SMI_LIMIT_S) -> SoftwareHere:
    """Of this Python. `limit_s`: for nvidia-smi, which takes a second or two."""
    driver = hardware.gpu_driver
    return SoftwareHere(
        python=platform.python_version(),
        torch=version_here("torch"),
        nccl=hardware.nccl_version,
        gpu_driver=None if driver is None else driver.version,
        gpus=read_gpu_states(limit_s),
    )


def read_gpu_states(limit_s: float = NVIDIA_SMI_LIMIT_S) -> tuple[GpuState, ...] | None:
    """None: there is no nvidia-smi, or it does not answer."""
    said = ask_nvidia_smi(_FIELDS, limit_s)
    return None if said is None else parse_gpu_states(said)


def parse_gpu_states(text: str) -> tuple[GpuState, ...]:
    """Of `nvidia-smi --query-gpu`; what it does not support it calls `[N/A]`."""
    rows = cells_of(text)
    return tuple(_state(row) for row in rows if len(row) == len(_FIELDS) and row[0].isdecimal())


def _state(row: list[str]) -> GpuState:
    told = dict(zip(_FIELDS, row, strict=True))
    return GpuState(
        index=int(told["index"]),
        model=told["name"],
        memory_bytes=_number(told["memory.total"], _MIB),
        used_bytes=_number(told["memory.used"], _MIB),
        uncorrected_errors_count=_number(told["ecc.errors.uncorrected.volatile.total"]),
        is_remapping_pending=_YES_NO.get(told["remapped_rows.pending"].lower()),
        has_remapping_failed=_YES_NO.get(told["remapped_rows.failure"].lower()),
        is_slowed_by=tuple(
            words
            for words, name in _SLOWED.items()
            if told[f"clocks_throttle_reasons.{name}"] == "Active"
        ),
        is_split=_ON_OFF.get(told["mig.mode.current"].lower()),
    )


def _number(text: str, unit: int = 1) -> int | None:
    return int(text) * unit if text.isdecimal() else None
