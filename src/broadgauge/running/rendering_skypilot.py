"""Which task files run an experiment on SkyPilot, whoever launches them? No cloud is asked."""

from broadgauge.engine.plan import make_plan
from broadgauge.manifests.files import ManifestFile, Rendered
from broadgauge.manifests.skypilot.budget import hold_limit_s
from broadgauge.manifests.skypilot.clusters import ClusterCases, cluster_name, clusters_of
from broadgauge.manifests.skypilot.readme import TaskFile, readme_file
from broadgauge.manifests.skypilot.scripts import alone_text, setup_text
from broadgauge.manifests.skypilot.task import TaskRequest, task
from broadgauge.platforms.led.orders import secret_names
from broadgauge.platforms.skypilot.devices import skypilot_devices
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.network import AnyNetwork, Network
from broadgauge.specs.writing import dump_data

ON_SKYPILOT = "platform=skypilot"
"""A `--set` text: whatever platform the file names, its faces of SkyPilot are rendered."""
_NOT_THERE = ("platform", "hosts", "kubernetes", "skypilot", "allocation")
"""Keys that mean nothing to the nodes of a cluster."""
MOST_BYTES = 60_000
"""Of an experiment within a task's `run`. Source: SkyPilot 0.14.1 sends `run` as one argument of a
shell, which Linux limits to 128 KiB (MAX_ARG_STRLEN); quoting makes it longer."""
_MONEY = (
    "`skypilot.max_cost_usd` is divided among the clusters by their number of nodes: a task file "
    "knows nothing of what the others have cost"
)


def render_skypilot(loaded: LoadedExperiment) -> Rendered:
    """A task for each cluster. Raises InputError."""
    experiment = loaded.experiment
    devices = skypilot_devices(experiment)
    plan = make_plan(experiment, {"skypilot": devices}, working_folder=str(loaded.folder))
    clusters = clusters_of(plan.cases)
    all_nodes = sum(each.key.nodes for each in clusters)
    files, tasks = [], []
    for cluster in clusters:
        shared = _with_share(experiment, cluster.key.nodes / all_nodes)
        limit_s = hold_limit_s(shared, cluster.key.nodes)
        secrets = tuple(sorted({*experiment.skypilot.secrets, *secret_names(cluster.cases)}))
        file = _task_file(_with_secrets(shared, secrets), experiment, cluster, limit_s)
        files.append(file)
        name = cluster_name(experiment.name, "", cluster.key)
        tasks.append(TaskFile(path=file.path, cluster=name, secrets=secrets, limit_s=limit_s))
    is_shared = experiment.skypilot.max_cost_usd is not None and len(clusters) > 1
    notes = (*plan.notes, *((_MONEY,) if is_shared else ()))
    readme = readme_file(experiment.name, experiment.skypilot, tasks, notes)
    return Rendered(files=(*files, readme), notes=notes)


def _task_file(
    settings: Experiment, experiment: Experiment, cluster: ClusterCases, limit_s: int
) -> ManifestFile:
    """`settings`: with the cluster's share of the money, and its secrets. Raises InputError."""
    text = dump_data(_part(experiment, cluster))
    if len(text.encode()) > MOST_BYTES:
        raise InputError(
            f"the experiment of cluster {cluster.key.word} has {len(text.encode()):,} bytes, and a "
            f"task's `run` takes {MOST_BYTES:,}",
            hint="two experiments are two files",
        )
    request = TaskRequest(
        experiment=settings,
        key=cluster.key,
        name=cluster_name(experiment.name, "", cluster.key),
        setup=setup_text(settings.skypilot, limit_s, installs=True),
        run=alone_text(settings.skypilot, text, limit_s),
    )
    labels = "\n".join(f"  {case.label}" for case in cluster.cases)
    comment = (
        f"Cluster {cluster.key.word} of the experiment {experiment.name}. It runs:\n{labels}\n"
        "Rendered by Broadgauge; `sky launch` takes it as it is."
    )
    return ManifestFile(path=f"{cluster.key.word}.yaml", comment=comment, objects=(task(request),))


def _with_share(experiment: Experiment, share: float) -> Experiment:
    """Of the money, that this cluster may cost."""
    most_usd = experiment.skypilot.max_cost_usd
    if most_usd is None:
        return experiment
    settings = experiment.skypilot.model_copy(update={"max_cost_usd": most_usd * share})
    changed: Experiment = experiment.model_copy(update={"skypilot": settings})
    return changed


def _with_secrets(experiment: Experiment, secrets: tuple[str, ...]) -> Experiment:
    settings = experiment.skypilot.model_copy(update={"secrets": secrets})
    changed: Experiment = experiment.model_copy(update={"skypilot": settings})
    return changed


def _part(experiment: Experiment, cluster: ClusterCases) -> dict[str, object]:
    """What of the experiment runs on this cluster, as its nodes see it: hosts, with one network.

    What its file does not say stays out, as defaults of the version that runs it there.
    """
    names = {case.network.name for case in cluster.cases if case.network is not None}
    networks = tuple(_as_there(each) for each in experiment.networks if each.name in names)
    workloads = tuple(
        each.model_copy(update={"networks": tuple(name for name in each.networks if name in names)})
        if each.networks is not None
        else each
        for each in experiment.workloads
        if any(case.workload.name == each.name for case in cluster.cases)
    )
    shapes = tuple(dict.fromkeys(case.shape for case in cluster.cases))
    part: Experiment = experiment.model_copy(
        update={
            "networks": networks,
            "workloads": workloads,
            "cluster": experiment.cluster.model_copy(update={"shapes": shapes}),
        }
    )
    form: dict[str, object] = part.model_dump(mode="json", exclude_unset=True)
    return {key: value for key, value in form.items() if key not in _NOT_THERE}


def _as_there(network: AnyNetwork) -> AnyNetwork:
    return network.as_found("skypilot") if isinstance(network, Network) else network
