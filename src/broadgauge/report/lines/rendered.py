"""What do the lines say of rendered manifests: what they are, hold, need, and how to apply them?"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.specs.experiment import Experiment
from broadgauge.wording.amounts import show_count

if TYPE_CHECKING:
    from broadgauge.running.rendering.experiment import RenderedExperiment


def rendered_lines(
    experiment: Experiment, found: "RenderedExperiment", folder: Path | None
) -> Iterator[str]:
    """One fact a line. `folder`: where the files are; None: they were printed."""
    jobs = found.jobs
    cases = "1 case" if len(jobs) == 1 else f"{len(jobs)} cases, a job each"
    yield f"plan       {experiment.name} on Kubernetes: {cases}"
    yield from (f"note       {note}" for note in found.notes)
    counts = (f"{number} {kind}" for kind, number in found.rendered.counts.items())
    yield f"objects    {', '.join(counts)}"
    yield f"pods       {found.num_pods} in all, at most {max(job.num_pods for job in jobs)} a job"
    yield f"GPUs       {_gpus(experiment, found)}"
    yield from (f"needs      {each}" for each in found.rendered.prerequisites)
    yield from (f"note       {note}" for note in found.rendered.notes)
    if folder is not None:
        yield from _how_to_apply(found, folder)


def _gpus(experiment: Experiment, found: "RenderedExperiment") -> str:
    if not found.most_gpus:
        return "none: ranks compute on cores"
    hours = show_count(found.gpu_hours, 2)
    words = f"at most {found.most_gpus} a job; about {hours} GPU-hours in all"
    price = None if experiment.cost is None else experiment.cost.usd_per_gpu_hour
    if price is not None:
        words += f", ${found.gpu_hours * price:,.2f}"
    words += " without pulling images and waiting for nodes"
    return words + (" (a guess: nobody knows how long your command takes)" * found.is_guess)


def _how_to_apply(found: "RenderedExperiment", folder: Path) -> Iterator[str]:
    jobs = found.jobs
    first = folder / "40-job" / jobs[0].word
    folders = {file.path.partition("/")[0] for file in found.rendered.files}
    makes_claims, makes_networks = "30-storage" in folders, "20-networks" in folders
    if len(jobs) == 1:
        yield f"apply      kubectl apply -k {folder}"
        what = " and ".join(["networks"] * makes_networks + ["claims"] * makes_claims)
        yield f"remove     kubectl delete -k {first}" + (f"   ({what} stay)" if what else "")
        return
    if makes_networks:
        yield f"apply      kubectl apply -k {folder / '20-networks'}   (once; networks stay)"
    if makes_claims:
        yield f"apply      kubectl apply -k {folder / '30-storage'}   (once; claims stay)"
    if "35-prepare" in folders:
        yield f"apply      kubectl apply -k {folder / '35-prepare'}   (once; what it fetches stays)"
    yield f"apply      kubectl apply -k {first}   (one case after another, each measured alone)"
    yield f"or         kubectl apply -k {folder}   (all {len(jobs)} at once, sharing networks)"
    yield f"remove     kubectl delete -k {first}"
