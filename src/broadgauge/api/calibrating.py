"""What can this machine do? Measured from Python."""

from typing import Literal

from broadgauge.api.asking import PathLike, path_of
from broadgauge.api.ending import interruptible
from broadgauge.api.progress import OnProgress, Watching
from broadgauge.platforms.machine import read_machine
from broadgauge.predict.system.file import dump_system
from broadgauge.results.folder import disk
from broadgauge.results.run_path import RUNS_FOLDER
from broadgauge.running.calibration.checks import check_replaceable, device_asked
from broadgauge.running.calibration.measuring import CalibrationObserver
from broadgauge.running.calibration.measuring import calibrate as measure
from broadgauge.specs.machines.system import System


def calibrate(
    output: PathLike = "system.yaml",
    *,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    runs_folder: PathLike = RUNS_FOLDER,
    progress: OnProgress | None = None,
) -> System:
    """Measures this machine for predictions, which takes about a minute, and writes a system file.

    output: the file that `predict(..., system=...)` and `whatif(..., system=...)` take; an older
        one of this machine is replaced. device: what computes; `"auto"`: GPUs where there are any.
    runs_folder: where the run of the collectives is kept. progress, threads and Ctrl-C: as `run`.

    Gives what the file says: `system.device`, `system.compute`, `system.paths`, `system.trained`.
    Raises InputError (no torch, no such device, a file that is something else), PlatformError
    (nothing could be measured) and RunFolderError.

    Example: `broadgauge.calibrate("system.yaml", progress=print)`
    """
    machine = read_machine()
    runs = path_of("runs_folder", runs_folder)
    wanted, path = device_asked(device, machine), path_of("output", output)
    check_replaceable(path, machine)
    watching = Watching(progress)
    with interruptible(watching) as interrupts:
        telling = CalibrationObserver(
            device=lambda what: watching.say(f"measuring  {what}"),
            run=watching,
            interrupts=interrupts,
        )
        system = measure(machine, wanted, runs_folder=runs, telling=telling)
    with disk.telling("write", path):
        disk.write_whole(path, dump_system(system).encode())
    return system
