"""Is there what reads traces? Most runs trace nothing, so it is not installed with us."""

from collections.abc import Iterable
from importlib.util import find_spec

from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError

HINT = "pip install 'broadgauge[traces]'"


def check_reader() -> None:
    """Raises InputError."""
    if find_spec("msgspec") is None:
        raise InputError("traces are read with msgspec, which is not installed", hint=HINT)


def check_traced(cases: Iterable[Case]) -> None:
    """Can what these cases will trace be read, before hours are measured? Raises InputError."""
    traced = next((case for case in cases if case.workload.tracing is not None), None)
    if traced is not None and find_spec("msgspec") is None:
        raise InputError(
            f"{traced.workload.name}: `trace` is asked for, and traces are read with msgspec, "
            "which is not installed",
            hint=f"{HINT}, or leave `trace` out",
        )
