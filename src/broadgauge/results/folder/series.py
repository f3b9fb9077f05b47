"""Where are the values of single steps and iterations? `series/<trial_id>.<name>.npy`, float64.

A value that is not there (a loss that is not finite) is NaN in the file; one that no figure can be
computed from (results/folder/usable_figures.py) is NaN when it is read.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.results.folder import disk
from broadgauge.results.folder.usable_figures import LARGEST
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.records.record import Record

if TYPE_CHECKING:  # tables are shown without numpy
    import numpy as np
    from numpy.typing import NDArray

SERIES_FOLDER = "series"
SeriesValues = Sequence[float | None] | Sequence[Sequence[float]]
"""One value a step or iteration, or rows of them."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")


def write_series(folder: Path, trial_id: str, series: Mapping[str, SeriesValues]) -> dict[str, str]:
    """Stores each, synced, and says where: name → path in the run folder."""
    paths: dict[str, str] = {}
    for name, values in series.items():
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"`{name}` is no name of a series")
        relative = f"{SERIES_FOLDER}/{trial_id}.{name}.npy"
        with disk.telling("write", folder / relative):
            disk.write_whole(folder / relative, _npy(values))
        paths[name] = relative
    return paths


def _npy(values: SeriesValues) -> bytes:
    import numpy as np

    buffer = io.BytesIO()
    # numpy makes NaN of None
    np.save(buffer, np.array(values, dtype=np.float64), allow_pickle=False)
    return buffer.getvalue()


def read_series(folder: Path, record: Record, name: str) -> NDArray[np.float64] | None:
    """`float64[n]`, or `float64[n, k]` for rows; None where the record has no such series.

    Raises RunFolderError.
    """
    import numpy as np

    relative = record.series.get(name)
    if relative is None:
        return None
    path = folder / relative
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RunFolderError(f"{record.record_id}: its series {relative} is outside of {folder}")
    try:
        with disk.telling("read", path):
            array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise RunFolderError(f"{path} is no series: {error}") from error
    values = np.asarray(array, dtype=np.float64)
    return np.where(np.abs(values) <= LARGEST, values, np.nan)


def remove_orphans(folder: Path, trial_ids: Iterable[str], records: Sequence[Record]) -> int:
    """How many files were removed that a killed trial left? Only of trials of this run."""
    kept = {path for record in records for path in record.series.values()}
    planned = set(trial_ids)
    with disk.telling("read", folder / SERIES_FOLDER):
        orphans = [
            path
            for path in (folder / SERIES_FOLDER).iterdir()
            if f"{SERIES_FOLDER}/{path.name}" not in kept and _trial_of(path.name) in planned
        ]
    for path in orphans:
        disk.remove(path)
    return len(orphans)


def remove_series(folder: Path, trial_id: str) -> None:
    """Nothing of a trial that was not stored is left, as far as that can be had now."""
    for path in (folder / SERIES_FOLDER).glob(f"{trial_id}.*"):
        disk.remove(path)


def _trial_of(file_name: str) -> str:
    """`b0.l1.t2.step_time_s.npy` → `b0.l1.t2`."""
    return ".".join(file_name.split(".")[:3])
