"""How fast is a storage, before it is measured? Rough: for plans and the remaining time."""

from broadgauge.specs.storage import Storage

_GBYTE_PER_S = 0.3
"""A disk of a virtual machine, or some ranks on an object store; serialising, too. A guess."""


def storage_gbyte_per_s(storage: Storage | None, *, reads: bool) -> float:
    """The slowest that is said of an emulated one, at most the guess. `reads`: it is read, too."""
    emulated = None if storage is None else storage.emulated
    if emulated is None:
        return _GBYTE_PER_S
    said: list[float | None] = [emulated.write_gbyte_per_s]
    if reads:
        said.append(emulated.read_gbyte_per_s)
    if emulated.rate_gbps is not None:
        said.append(emulated.rate_gbps / 8)
    return min([_GBYTE_PER_S, *(rate for rate in said if rate is not None)])
