"""How are rendered task files launched, by hand and with nothing of ours on this machine?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.manifests.files import ManifestFile
from broadgauge.specs.skypilot import Skypilot


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """One cluster's."""

    path: str
    cluster: str
    secrets: tuple[str, ...]
    limit_s: int


def readme_file(
    experiment: str, settings: Skypilot, tasks: Sequence[TaskFile], notes: Sequence[str]
) -> ManifestFile:
    """For people."""
    lines = "\n".join(_lines(experiment, settings, tasks, notes))
    return ManifestFile(path="README.md", comment="", text=f"{lines}\n")


def _lines(
    experiment: str, settings: Skypilot, tasks: Sequence[TaskFile], notes: Sequence[str]
) -> Iterator[str]:
    yield f"# {experiment} on SkyPilot"
    yield ""
    yield "Rendered by Broadgauge from the experiment; render it again after changing that."
    yield ""
    yield "One file a cluster. Launch them from the experiment's folder, one after another: paths"
    yield "of this machine start there."
    yield ""
    for task in tasks:
        secrets = "".join(f" --secret {name}" for name in task.secrets)
        yield f"    sky launch --cluster {task.cluster}{secrets} FOLDER/{task.path}"
        if settings.results is None:
            yield f"    rsync --archive {task.cluster}:sky_workdir/runs/ runs/"
        yield f"    sky down {task.cluster}"
        yield ""
    if settings.results is None:
        yield f"Fetch `runs` within {settings.idle_minutes} minutes of the job's end: then the"
        yield "cluster brings itself down. `skypilot.results` keeps them in a bucket or a volume."
    else:
        yield f"Run folders are copied to `{settings.results}`; each cluster brings itself down"
        yield f"{settings.idle_minutes} minutes after its job."
    yield "`broadgauge show` and `broadgauge report` read a run folder wherever it lies."
    yield ""
    longest_s = max(task.limit_s for task in tasks)
    yield f"`setup` and `run` end by themselves after {longest_s / 3600:.3g} h at most, and"
    yield "autodown follows. SkyPilot sets that when files have been sent: look at `sky status` if"
    yield "a launch fails before. `broadgauge run --on skypilot` sets it before anything is sent."
    if notes:
        yield ""
        yield "## To know"
        yield ""
        yield from (f"- {note}." for note in notes)
