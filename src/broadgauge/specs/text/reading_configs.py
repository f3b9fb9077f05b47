"""What do the `config.json` files of an experiment's commands say? They are read with it.

Once, and here, on the machine of the tool: so plan, records and every rank on every platform have
the same arguments, and a file that changes meanwhile changes no run.
"""

import posixpath
from typing import Protocol

from broadgauge.specs.errors import ExperimentError, InputError, Problem
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.document import Document
from broadgauge.specs.workloads.training_config import TrainingConfigError
from broadgauge.specs.workloads.workload import Workload


class ConfigReader(Protocol):
    """Finds a `config`; files are its affair, and none of this module's."""

    def __call__(self, path: str) -> str:
        """The text of the file at this path. Raises InputError."""
        ...


def with_configs(
    experiment: Experiment, document: Document, read_config: ConfigReader
) -> Experiment:
    """The experiment with what the files say in the place of their names; a workload that runs on
    none of its platforms needs no file. Raises ExperimentError with each problem's place."""
    problems: list[Problem] = []
    workloads: list[Workload] = []
    for place, workload in enumerate(experiment.workloads):
        if not workload.is_for(experiment.platforms):
            workloads.append(workload)
            continue
        try:
            workloads.append(_with_config(workload, place, document, read_config))
        except (InputError, TrainingConfigError) as error:
            where = document.where(("workloads", place, "config"))
            message = error.message if isinstance(error, InputError) else str(error)
            problems.append(Problem(where, f"`config`: {message}", error.hint))
    if problems:
        raise ExperimentError(list({str(each): each for each in problems}.values()))
    read: Experiment = experiment.model_copy(update={"workloads": tuple(workloads)})
    return read


def _with_config(
    workload: Workload, place: int, document: Document, read_config: ConfigReader
) -> Workload:
    named = workload.unread_config
    if named is None:
        return workload
    folder = posixpath.dirname(document.file_of(("workloads", place, "config")))
    return workload.with_config(read_config(posixpath.join(folder, named)))
