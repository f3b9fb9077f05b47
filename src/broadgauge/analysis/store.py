"""Where does a run's analysis rest? In analysis.json of its folder: a cache, never a source.

Deleted, it comes back byte by byte. Where the plan, the records or the version of the analysis are
others than those it was made from, or it can't be read, it is made again. Where the folder can't be
written, or is being written by a run, the analysis is made and not stored.
"""

import os
from pathlib import Path

from pydantic import ValidationError

from broadgauge.analysis.model import AnalysedRun, Analysis, MadeFrom
from broadgauge.results.cost import cost_of
from broadgauge.results.folder import disk
from broadgauge.results.folder.lock import is_being_written
from broadgauge.results.folder.reading import StoredRun, read_run
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_read
from broadgauge.specs.base import AS_STORED
from broadgauge.specs.cost import Cost
from broadgauge.specs.errors import RunFolderError

ANALYSIS_FILE = "analysis.json"


def read_analysed(path: Path, cost: Cost | None = None) -> AnalysedRun:
    """The run of this folder and its analysis, which is stored. Raises RunFolderError.

    `cost`: prices that are given instead of those of the experiment or the catalog.
    """
    stored = read_run(path)
    run = summarise_read(stored)
    made_from = made_from_bytes(stored)
    file = stored.folder / ANALYSIS_FILE
    analysis = _kept(file, made_from)
    if analysis is None or not _has_all_cases(analysis, run):
        analysis = _made(run, made_from)
        _keep(file, analysis)
    return AnalysedRun(run=run, analysis=analysis, cost=cost_of(run, cost))


def _made(run: RunSummary, made_from: MadeFrom) -> Analysis:
    # Here, so that what is stored is shown without the rules and what they need.
    from broadgauge.analysis.analyse import analyse

    return analyse(run, made_from)


def made_from_bytes(stored: StoredRun) -> MadeFrom:
    """What an analysis of this folder is made from."""
    return MadeFrom(plan_sha256=stored.plan_sha256, records_sha256=stored.records_sha256)


def analysis_json(analysis: Analysis) -> str:
    """As it is stored: the same records give the same bytes."""
    return analysis.model_dump_json(indent=1) + "\n"


def _kept(file: Path, made_from: MadeFrom) -> Analysis | None:
    """What is stored, where it was made from these bytes by this version."""
    try:
        analysis = Analysis.model_validate_json(disk.read_whole(file), context=AS_STORED)
    except (OSError, RunFolderError, ValidationError):
        return None
    return analysis if analysis.made_from == made_from else None


def _has_all_cases(analysis: Analysis, run: RunSummary) -> bool:
    """One that was changed by hand may lack some, which every view asks for."""
    return [case.key for case in analysis.cases] == [each.case.key for each in run.cases]


def _keep(file: Path, analysis: Analysis) -> None:
    if is_being_written(file.parent):
        return
    own = file.with_name(f"{file.name}.{os.getpid()}")  # two readers must not write into one file
    try:
        disk.write_whole(own, analysis_json(analysis).encode())
        own.replace(file)
    except OSError:
        disk.remove(own)
