"""Which run does the user mean: a folder, or `last`?"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broadgauge.results.model import RunSummary

RUNS_FOLDER = "runs"
LAST = "last"


def run_path(text: str, runs_folder: Path = Path(RUNS_FOLDER)) -> Path:
    """A run folder; `last` is the newest in the folder of runs. Raises RunFolderError."""
    from broadgauge.specs.errors import RunFolderError

    if text != LAST or Path(text).exists():
        return Path(text)
    plans = sorted(runs_folder.glob("*/plan.json"), key=lambda path: path.stat().st_mtime)
    if not plans:
        raise RunFolderError(
            f"there is no run under {runs_folder}/", hint="begin with: broadgauge run quickstart"
        )
    return plans[-1].parent


def read_summary(path: Path) -> "RunSummary":
    """The run of this folder, put together. Raises RunFolderError."""
    from broadgauge.results.summary import summarise_stored

    return summarise_stored(path)
