"""Does a run go on in a cluster or on hosts, whether or not a tool follows it? By its folder alone,
which says where its leader was left."""

import shlex
from pathlib import Path

from broadgauge.platforms.hosts.leader_place import leader_file
from broadgauge.platforms.kubernetes.job_place import JobPlace, place_file
from broadgauge.results.folder.lock import is_being_written
from broadgauge.results.folder.run_folder import LOGS_FOLDER
from broadgauge.specs.errors import RunFolderError


def elsewhere(folder: Path) -> str | None:
    """`the run goes on in job pods-1a2b3c …`, and how it is collected; None: nothing of it was left
    anywhere, or all of it was ended."""
    try:
        where = _where(folder / LOGS_FOLDER)
    except RunFolderError as error:
        return error.message  # that nobody knows
    if where is None:
        return None
    if is_being_written(folder):
        return f"the run goes on {where}, and a `broadgauge run` on this machine follows it"
    collects = f"`broadgauge run --resume {shlex.quote(str(folder))}` collects it"
    return f"the run goes on {where}, as far as its folder knows: {collects}"


def _where(logs: Path) -> str | None:
    """Raises RunFolderError where nobody knows."""
    job = place_file(logs).read()
    if job is not None and not job.is_gone:
        return f"in {_job_words(job)}"
    leader = leader_file(logs).read()
    return None if leader is None else f"under the leader on host {leader.host}"


def _job_words(place: JobPlace) -> str:
    of = "" if place.context is None else f" of context {place.context}"
    return f"job {place.name} in namespace {place.namespace}{of}"
