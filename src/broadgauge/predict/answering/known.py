"""What does the user know of the machine? A system file, and steps that were measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.gpus import Gpu, find_gpu
from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.system.file import read_system
from broadgauge.predict.system.knowledge import calibrated_by, gpu_of
from broadgauge.predict.tables.table import read_table
from broadgauge.specs.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSystem:
    """The predictor's knowledge with the user's own."""

    knowledge: Knowledge | None
    """None: the catalog's alone."""
    gpu: str | None
    """Of the system file."""
    gpus_per_node: int | None
    """Of the machine of the system file; None: nothing is known, or something else is asked."""
    words: tuple[str, ...]
    """What was taken from where."""


def read_known(
    system_file: Path | None,
    measured_file: Path | None,
    properties: Mapping[str, Sequence[Any]],
    catalog: Catalog,
    *,
    has_experiment: bool = False,
) -> KnownSystem:
    """`has_experiment`: the training is an experiment's, which has its own nodes. Raises
    InputError."""
    if system_file is None and measured_file is None:
        return KnownSystem(knowledge=None, gpu=None, gpus_per_node=None, words=())
    knowledge, gpu, gpus_per_node, words = default_knowledge(), None, None, []
    if system_file is not None:
        system = read_system(system_file)
        entry = gpu_of(system, catalog.gpus, _asked_gpu(properties, catalog))
        gpu = entry.name
        knowledge = calibrated_by(system, knowledge, entry)
        device = system.device.name
        is_known = find_gpu(device, catalog.gpus) is not None
        words.append(f"{gpu if is_known else device} as {system_file} measured it")
        if not has_experiment and not {"node", "gpus_per_node"} & properties.keys():
            gpus_per_node = system.device.count
            words.append(f"GPUs a node: {gpus_per_node} (as that machine has)")
        if not is_known:
            words.append(f"{device} is in no catalog: memory, price and links are of {gpu}")
    if measured_file is not None:
        knowledge, more = _with_steps(measured_file, knowledge, catalog)
        words.append(more)
    return KnownSystem(
        knowledge=knowledge, gpu=gpu, gpus_per_node=gpus_per_node, words=tuple(words)
    )


def _asked_gpu(properties: Mapping[str, Sequence[Any]], catalog: Catalog) -> Gpu | None:
    """The one GPU that is named; None: there is none, or several. Raises InputError."""
    names = {catalog.gpu(name).name for name in properties.get("gpu", ())}
    names |= {catalog.node(name).gpu for name in properties.get("node", ())}
    return catalog.gpu(names.pop()) if len(names) == 1 else None


def _with_steps(path: Path, knowledge: Knowledge, catalog: Catalog) -> tuple[Knowledge, str]:
    """Factors from measured steps, with how many of the rows could be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"--measured {path}: {error.strerror or error}") from None
    table = read_table(data, path.name, catalog.gpu)
    if not table.rows:
        reason = f": line {table.unread[0].line}: {table.unread[0].reason}" if table.unread else ""
        raise InputError(f"--measured {path}: no row can be read{reason}")
    rows = [Observation(case=row.case, step_time_s=row.step_time_s) for row in table.rows]
    unread = f", {len(table.unread)} unread" if table.unread else ""
    steps = "1 step" if len(rows) == 1 else f"{len(rows)} steps"
    return fit(rows, knowledge), f"calibrated by {steps} of {path}{unread}"
