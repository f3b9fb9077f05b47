"""What does the user know of the machine? A system file, and steps that were measured."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broadgauge.catalog.catalog import Catalog
    from broadgauge.catalog.gpus import Gpu
    from broadgauge.predict.facts.knowledge import Knowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The predictor's knowledge with the user's own."""

    knowledge: "Knowledge | None"
    """None: the catalog's alone."""
    gpu: str | None
    """Of the system file."""
    gpus_per_node: int | None
    """Of the machine of the system file; None: nothing is known, or something else is asked."""
    words: tuple[str, ...]
    """What was taken from where."""


def add_flags(group: "argparse._ArgumentGroup") -> None:
    """Declares them."""
    group.add_argument(
        "--system", type=Path, metavar="FILE", help="of `calibrate`: this GPU's measured speed"
    )
    group.add_argument(
        "--measured",
        type=Path,
        metavar="FILE.csv",
        help="steps of yours, in the columns of `validate`'s tables: they calibrate",
    )


def read_known(options: argparse.Namespace, catalog: "Catalog") -> Known:
    """Raises InputError."""
    if options.system is None and options.measured is None:
        return Known(knowledge=None, gpu=None, gpus_per_node=None, words=())
    from broadgauge.predict.facts.knowledge import default_knowledge

    knowledge, gpu, gpus_per_node, words = default_knowledge(), None, None, []
    if options.system is not None:
        from broadgauge.catalog.gpus import find_gpu
        from broadgauge.cli.predict_flags import read_wish
        from broadgauge.predict.system.file import read_system
        from broadgauge.predict.system.knowledge import calibrated_by, gpu_of

        system = read_system(options.system)
        wish = read_wish(options)
        entry = gpu_of(system, catalog.gpus, _asked_gpu(wish, catalog))
        gpu = entry.name
        knowledge = calibrated_by(system, knowledge, entry)
        device = system.device.name
        is_known = find_gpu(device, catalog.gpus) is not None
        words.append(f"{gpu if is_known else device} as {options.system} measured it")
        if options.experiment is None and not {"node", "gpus_per_node"} & wish.keys():
            gpus_per_node = system.device.count
            words.append(f"GPUs a node: {gpus_per_node} (as that machine has)")
        if not is_known:
            words.append(f"{device} is in no catalog: memory, price and links are of {gpu}")
    if options.measured is not None:
        knowledge, more = _with_steps(options.measured, knowledge, catalog)
        words.append(more)
    return Known(knowledge=knowledge, gpu=gpu, gpus_per_node=gpus_per_node, words=tuple(words))


def _asked_gpu(wish: "Mapping[str, Sequence[Any]]", catalog: "Catalog") -> "Gpu | None":
    """The one GPU that flags name; None: they name none, or several. Raises InputError."""
    names = {catalog.gpu(name).name for name in wish.get("gpu", ())}
    names |= {catalog.node(name).gpu for name in wish.get("node", ())}
    return catalog.gpu(names.pop()) if len(names) == 1 else None


def _with_steps(path: Path, knowledge: "Knowledge", catalog: "Catalog") -> "tuple[Knowledge, str]":
    """Factors from measured steps, with how many of the rows could be read."""
    from broadgauge.predict.calibration.factors import Observation, fit
    from broadgauge.predict.tables.table import read_table
    from broadgauge.specs.errors import InputError

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
