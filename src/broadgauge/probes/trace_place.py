"""Where does a rank put its traces? Beside its log, in the run's folder: there they are kept."""

import tempfile
from pathlib import Path


def own_log() -> Path | None:
    """The file that this process's output goes to; None: a terminal or a pipe."""
    log = Path("/proc/self/fd/1").resolve()
    return log if log.is_file() else None


def trace_folder(trial_id: str) -> Path:
    """Of one trial and one process, made here; where there is no log, a temporary one, which stays
    on this machine. Raises OSError."""
    log = own_log()
    if log is None:
        return Path(tempfile.mkdtemp(prefix="broadgauge-trace-"))
    folder = log.with_suffix(f".{trial_id}.traces")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
