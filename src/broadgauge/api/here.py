"""What would an experiment take on the machine that was calibrated? Asked from Python."""

from broadgauge.api.asking import PathLike, path_of
from broadgauge.api.run_and_resume import ExperimentLike, load_experiment
from broadgauge.api.table import Table
from broadgauge.predict.system.experiment_here import steps_here
from broadgauge.predict.system.file import read_system
from broadgauge.results.tables import CellKind, ExportColumn, ExportTable

COLUMNS: dict[str, CellKind] = {
    "label": "text",
    "step_time_s": "number",
    "step_without_communication_s": "number",
    "network_cost_s": "number",
    "tokens_per_s": "number",
    "network_bytes": "number",
}


def predict_here(experiment: ExperimentLike, system: PathLike = "system.yaml") -> Table:
    """What an experiment's trainings would take on the machine of a system file.

    experiment: as `run` takes it. system: a file of `calibrate`. No interval is known for one
    machine: `broadgauge calibrate --check RUN` compares the file with a run.

    One row a training. Columns: label (`train 2x1 slow`), step_time_s,
    step_without_communication_s, network_cost_s (what communication adds), tokens_per_s,
    network_bytes (what a node sends in a step). Raises InputError.

    Example: `broadgauge.predict_here("quickstart", "system.yaml").to_pandas()`
    """
    loaded = load_experiment(experiment, {})
    steps, _ = steps_here(loaded.experiment, read_system(path_of("system", system)))
    rows = tuple(tuple(getattr(step, name) for name in COLUMNS) for step in steps)
    columns = tuple(ExportColumn(name=name, kind=kind) for name, kind in COLUMNS.items())
    return Table("predictions here", ExportTable(columns=columns, rows=rows))
