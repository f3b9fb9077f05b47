"""The first screen of `run`: what was found on this machine, and what will be done."""

from collections.abc import Iterator, Sequence

from broadgauge.engine.expected_time import guessed_s
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.report.words.cost import usd_words
from broadgauge.running.cluster_hold import ClusterHold, cluster_hold
from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.machine import MachineFacts, MachineNic
from broadgauge.specs.networks.network import AnyNetwork, Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.units import show_count, show_rate, show_size, show_time

MAX_NICS_SHOWN = 4


def machine_lines(machine: MachineFacts) -> Iterator[str]:
    """What was found, one fact a line."""
    memory = show_size(machine.memory_bytes)
    yield f"machine    {machine.hostname}: {len(machine.cores)} cores, {memory} of memory"
    if machine.gpus:
        names = sorted({gpu.name for gpu in machine.gpus})
        yield f"GPUs       {len(machine.gpus)} × {', '.join(names)}"
    else:
        yield "GPUs       none: ranks compute on cores and talk over Gloo"
    shown = [_nic(nic) for nic in machine.nics[:MAX_NICS_SHOWN]]
    more = len(machine.nics) - len(shown)
    yield f"NICs       {', '.join(shown) or 'none'}{f' and {more} more' if more > 0 else ''}"
    torch = f"torch {machine.torch}" if machine.torch else "no torch"
    yield f"software   kernel {machine.kernel}, Python {machine.python}, {torch}"
    yield f"emulation  {_emulation(machine)}"


def refusal_lines(machine: MachineFacts) -> Iterator[str]:
    """Why there are no nodes, what would give them, and what is done instead."""
    yield f"no nodes   can be emulated on this machine: {machine.refusal}"
    yield f"fix        {machine.fix or 'unknown: run as root, or on another machine'}"
    yield "instead    what needs no second node runs on the local platform; exit code 4"


def _nic(nic: MachineNic) -> str:
    speed = "speed unknown" if nic.speed_gbps is None else show_rate(nic.speed_gbps)
    return f"{nic.name} ({speed}, MTU {nic.mtu_bytes})"


def _emulation(machine: MachineFacts) -> str:
    if not machine.can_emulate:
        return f"none here: {machine.refusal}"
    delay = "delay and loss too" if machine.can_delay else "no delay or loss: no netem here"
    return f"nodes and link rates can be emulated; {delay}"


def plan_lines(experiment: Experiment, plan: Plan) -> Iterator[str]:
    """What will be done, and how long it should take."""
    num_trials = sum(len(launch.trials) for launch in plan.launches)
    num_blocks = len({launch.block for launch in plan.launches})
    yield (
        f"plan       {experiment.name} on the {_platform(experiment)}: "
        f"{_counted(len(plan.cases), 'case')}, {_counted(num_blocks, 'block')}, "
        f"{_counted(len(plan.launches), 'launch')}, {_counted(num_trials, 'trial')}"
    )
    if plan.baseline is not None:
        num_sides = sum(case.arm == "baseline" for case in plan.cases)
        yield (
            f"against    {plan.baseline.run}: {num_sides} of its cases, each beside its partner "
            "in every block"
        )
    for network in experiment.networks:
        cases = [case for case in plan.cases if case.plain_network_name == network.name]
        if cases:
            yield f"           network {_network_label(network, cases[0])}"
    yield from _storage_lines(experiment, plan)
    for workload in experiment.workloads:
        shapes = dict.fromkeys(c.shape for c in plan.cases if c.workload == workload)
        if shapes:
            yield f"           {workload.name} on {', '.join(shapes)} (nodes x ranks a node)"
    for note in plan.notes:
        yield f"note       {note}"
    yield f"expected   about {show_time(plan.expected_s, 2)}{_guessed(plan)}"
    hold = cluster_hold(experiment, plan)
    if hold is not None:
        yield from hold_lines(hold)


def _storage_lines(experiment: Experiment, plan: Plan) -> Iterator[str]:
    """Where will be written, and how much?"""
    written = {case.key: in_engine(case.workload).written_bytes(case) for case in plan.cases}
    trials = [trial.case_key for launch in plan.launches for trial in launch.trials]
    for storage in experiment.storages:
        keys = {case.key for case in plan.cases if case.storage == storage}
        if keys:
            whole = sum(written[key] for key in trials if key in keys)
            most = max(written[key] for key in keys)
            yield (
                f"           storage {storage.name} ({storage.path}): {show_size(whole)} are "
                f"written in all, {show_size(most)} at most in a trial, and removed"
            )


def _guessed(plan: Plan) -> str:
    """Nobody knows how long a user's command takes before one has ended."""
    guess_s = guessed_s(plan)
    if not guess_s:
        return ""
    return f", {show_time(guess_s, 2)} of it a guess until the first command has ended"


def hold_lines(hold: ClusterHold) -> Iterator[str]:
    """What a run holds of a cluster while it runs, and what that costs."""
    pods = f"kubernetes 1 job of {_counted(hold.num_pods, 'pod')}"
    if not hold.num_gpus:
        yield f"{pods}: ranks compute on cores"
    else:
        gpus = _counted(hold.gpus_per_pod, "GPU")
        yield f"{pods} × {gpus}: {_counted(hold.num_gpus, 'GPU')} held while it runs"
        yield f"GPU-hours  {_gpu_hours(hold)}"
    if hold.num_gpus or hold.price is not None or hold.why_no_price is not None:
        yield f"cost       {_cost(hold)}"


_UNKNOWN = "unknown: nobody knows how long your command takes"
_BESIDE = "without pulling images and waiting for nodes"


def _gpu_hours(hold: ClusterHold) -> str:
    if hold.gpu_hours is None:
        return f"{_UNKNOWN}; {hold.num_gpus} in each hour"
    return f"about {show_count(hold.gpu_hours, 2)}, {_BESIDE}"


def _cost(hold: ClusterHold) -> str:
    if hold.why_no_price is not None:
        return f"unknown: {hold.why_no_price}"
    if hold.price is None:
        return "unknown: the experiment has no price, as `cost: {usd_per_gpu_hour: 2.95}`"
    if hold.cost_usd is None:
        words = f"{_UNKNOWN}; {usd_words(hold.price_usd_per_hour)} in each hour"
    else:
        words = f"about {usd_words(hold.cost_usd)}"
    return f"{words}, at {hold.price.words}"


def _network_label(network: AnyNetwork, case: Case) -> str:
    """As the experiment says it, unless it is built otherwise here: `best_effort` leaves out."""
    built = case.link
    if built is None or not isinstance(network, Network):
        return network.label
    return network.label if network.on_nodes(case.nodes) == built else built.label


def _counted(number: int, what: str) -> str:
    """`1 launch`, `2 launches`."""
    ending = "" if number == 1 else "es" if what.endswith("ch") else "s"
    return f"{number} {what}{ending}"


_PLATFORMS: dict[PlatformKind, str] = {
    "emulated": "emulated cluster",
    "local": "local platform",
    "hosts": "hosts",
    "kubernetes": "cluster of Kubernetes",
}


def _platform(experiment: Experiment) -> str:
    return " and the ".join(_PLATFORMS[platform] for platform in experiment.platforms)


def schedule_lines(plan: Plan) -> Iterator[str]:
    """Every launch with its trials in order, for `--dry-run`."""
    cases = {case.key: case for case in plan.cases}
    for launch in plan.launches:
        labels: Sequence[str] = [
            f"{trial.trial_id} {cases[trial.case_key].label}" for trial in launch.trials
        ]
        yield f"launch {launch.launch_id} (about {show_time(launch.expected_s, 2)})"
        yield from (f"  {label}" for label in labels)
