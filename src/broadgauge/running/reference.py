"""What would the user's own commands take with no network in their way? One case more of each.

An unshaped copy of the fastest network keeps its NICs, MTU and overlay, so that only rates differ.
"""

from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.workload import Workload

NAMES = ("reference", "unshaped", "unshaped-reference")


def with_reference(experiment: Experiment) -> Experiment:
    """The experiment with an unshaped network for its commands; as it is where it has one.

    Raises InputError where there is nothing to refer to.
    """
    shaped = [each for each in experiment.networks if isinstance(each, Network) and not each.face]
    if not shaped or not any(w.is_under_torchrun for w in experiment.workloads):
        raise InputError(
            "--add-reference is for commands on networks that are emulated between nodes",
            hint="a training measures its step with communication off, and needs no reference",
        )
    rates = {each.name: each.node_rate_gbps for each in shaped}
    if None in rates.values():
        return experiment
    taken = {each.name for each in experiment.networks}
    name = next(name for name in NAMES if name not in taken)
    fastest = max(shaped, key=lambda each: rates[each.name] or 0.0)
    reference = fastest.model_copy(
        update={
            "name": name,
            "rate_gbps": None,
            "rate_inferred_from": None,
            "receive_rate_gbps": None,
            "delay_s": 0.0,
            "jitter_s": 0.0,
            "loss_ratio": 0.0,
            "slow_pairs": (),
            "nccl_seen_gbps": None,
        }
    )
    known = tuple(each.name for each in experiment.networks)
    workloads = tuple(_on_it(workload, name, known) for workload in experiment.workloads)
    return experiment.model_copy(
        update={"networks": (*experiment.networks, reference), "workloads": workloads}
    )


def _on_it(workload: Workload, name: str, known: tuple[str, ...]) -> Workload:
    """A command runs on it too; any other workload where it did before."""
    networks = workload.networks
    if workload.is_under_torchrun:
        return workload if networks is None else _on(workload, (*networks, name))
    return _on(workload, known) if networks is None else workload


def _on(workload: Workload, networks: tuple[str, ...]) -> Workload:
    return workload.model_copy(update={"networks": networks})
