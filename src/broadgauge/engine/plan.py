"""What will be run on this machine, in which order? Pure: no clock, no environment."""

from broadgauge.engine.cases import expand_cases
from broadgauge.engine.estimate import COMMAND_S
from broadgauge.engine.schedule import group_cases, is_command, schedule
from broadgauge.engine.shapes import resolve_cluster
from broadgauge.specs.case import Case
from broadgauge.specs.cluster import Cluster
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machine import MachineFacts
from broadgauge.specs.plan import Plan
from broadgauge.specs.units import show_time


def make_plan(experiment: Experiment, machine: MachineFacts) -> Plan:
    """What does this experiment mean on this machine? Raises InputError where it can't be."""
    cluster = resolve_cluster(experiment.cluster, machine)
    cases, case_notes = expand_cases(experiment, cluster, can_delay=machine.can_delay)
    cores_per_node = {str(shape): cluster.cores_per_node(shape) for shape in cluster.shapes}
    groups = group_cases(cases, experiment.trials_per_launch, cores_per_node)
    launches = schedule(groups, experiment.launches, experiment.seed)
    return Plan(
        experiment_name=experiment.name,
        description=experiment.description,
        seed=experiment.seed,
        limits=experiment.limits,
        cases=cases,
        launches=launches,
        expected_s=round(sum(launch.expected_s for launch in launches), 3),
        hypotheses=experiment.hypotheses,
        published=experiment.published,
        notes=(*cluster.notes, *case_notes, *_command_notes(cases, experiment.trials_per_launch)),
    )


def on_local_platform(experiment: Experiment, machine: MachineFacts) -> Experiment:
    """What of an experiment can run where nodes can't be emulated? Its one-node shapes.

    Where it has none: the ranks of its largest shape, on one node.
    """
    shapes = resolve_cluster(experiment.cluster, machine).shapes
    on_one_node = [str(shape) for shape in shapes if shape.nodes == 1]
    if not on_one_node:
        on_one_node = [f"1x{max(shape.world_size for shape in shapes)}"]
    cluster = {**experiment.cluster.model_dump(exclude_unset=True), "shapes": tuple(on_one_node)}
    local: Experiment = experiment.model_copy(
        update={"platform": "local", "cluster": Cluster.model_validate(cluster)}
    )
    return local


def _command_notes(cases: tuple[Case, ...], trials_per_launch: int) -> tuple[str, ...]:
    """What should the owner of a command know of its times and trials?"""
    names = dict.fromkeys(f"`{case.workload.name}`" for case in cases if is_command(case))
    if not names:
        return ()
    who = ", ".join(names) + (" is a command" if len(names) == 1 else " are commands")
    notes = [f"{who} of yours: {show_time(COMMAND_S)} a launch is a guess"]
    if trials_per_launch > 1:
        notes.append(f"{who}: one trial a launch, not {trials_per_launch}")
    return tuple(notes)
