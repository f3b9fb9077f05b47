"""Which experiment is the ladder of another?

Where links are emulated, its networks become one network at several rates. On hosts and in pods,
where nobody sets a rate, the networks that are there are the rungs, and a collective beside the job
says what each of them carries.
"""

from collections.abc import Sequence

from broadgauge.advise.ladders.found_rates import LEAST_BYTES
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError, PlatformError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.cluster import split_shape
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.networks.network import Network
from broadgauge.specs.platforms import ON_OTHER_MACHINES
from broadgauge.specs.units import parse_rate_gbps, show_rate
from broadgauge.specs.workloads.collectives import CollectivesWorkload
from broadgauge.specs.workloads.workload import Workload

NUM_RUNGS = 6
"""Four figures at most are fitted; two more rates say whether the curve is one."""
BELOW, ABOVE = 2.0, 8.0
"""A ladder goes from half the slowest rate named to eight times it: a step that is half network at
the rate named is so by two thirds at one end and by a ninth at the other."""
FEWEST_RATES = 3
MOST_RATES = 24
LEAST_GBPS, MOST_GBPS = 0.001, 10_000.0
NAME_SUFFIX = "-ladder"
UNSHAPED = "unshaped"
"""The rung without a rate."""
MESSAGE_BYTES = 64 * 2**20
"""Of the all_reduce that says what a network carries: more than two of DDP's buckets, so that
latency is a small part of it."""
_LONGEST_NAME = 63
_OF_A_RUNG = {"name", "rate_gbps", "rate_inferred_from", "receive_rate_gbps", "description"}
"""What a rung does not have of the network whose ladder it stands on."""


def as_ladder(
    experiment: Experiment, rates_gbps: Sequence[float] = (), network_name: str | None = None
) -> Experiment:
    """The experiment on rungs: what has no steps or no link is left out of it.

    Raises InputError where nothing would be left, or no rate is named anywhere; of networks that
    are there already where a rate or one of them is asked for, or they are fewer than three.
    """
    if ON_OTHER_MACHINES.issuperset(experiment.platforms):
        return _on_found_networks(experiment, rates_gbps, network_name)
    base = _base(experiment, network_name)
    rates = tuple(rates_gbps) or default_rates_gbps(experiment)
    changed: Experiment = experiment.model_copy(
        update={
            "name": _name(experiment),
            "platform": "emulated",
            "cluster": experiment.cluster.model_copy(update={"shapes": _shapes(experiment)}),
            "networks": (*(_rung(base, rate) for rate in rates), *_unshaped(base)),
            "workloads": tuple(_free(workload) for workload in _workloads(experiment)),
            "skip_if": tuple(rule for rule in experiment.skip_if if rule.network is None),
            "hypotheses": (),
            "published": (),
        }
    )
    return changed


def _name(experiment: Experiment) -> str:
    return experiment.name[: _LONGEST_NAME - len(NAME_SUFFIX)] + NAME_SUFFIX


def _on_found_networks(
    experiment: Experiment, rates_gbps: Sequence[float], network_name: str | None
) -> Experiment:
    """The same job on every network that its platform has."""
    platforms = experiment.platforms
    where = " and ".join(platforms)
    if rates_gbps or network_name is not None:
        option = "--rates" if rates_gbps else "--network"
        raise InputError(
            f"{option}: no rate can be set on {where}, whose networks are there already",
            hint=f"without {option} each network is measured as it is; `--on emulated` sets rates",
        )
    between = [each for each in experiment.networks if isinstance(each, Network)]
    for kind in platforms:
        number = sum(each.has_face_on(kind) for each in between)
        if number < FEWEST_RATES:
            raise InputError(
                f"{experiment.name} names {number} networks on {kind}, and a curve over what they "
                f"carry needs {FEWEST_RATES}",
                hint="name another network, or let `--on emulated` emulate several rates",
            )
    found = [each for each in between if any(each.has_face_on(kind) for kind in platforms)]
    changed: Experiment = experiment.model_copy(
        update={
            "name": _name(experiment),
            "cluster": experiment.cluster.model_copy(update={"shapes": _shapes(experiment)}),
            "networks": tuple(found),
            "workloads": (
                *(_free(workload) for workload in _workloads(experiment)),
                *_that_show_rates(experiment, found),
            ),
            "hypotheses": (),
            "published": (),
        }
    )
    return changed


def _that_show_rates(experiment: Experiment, found: Sequence[Network]) -> tuple[Workload, ...]:
    """The experiment's own large all_reduces; where it has none one is added, unless plain TCP
    streams say as much: of commands, whose image may have no torch, where all send by sockets."""
    own = tuple(
        _free(each) for each in experiment.workloads if each.all_reduce_bytes >= LEAST_BYTES
    )
    if own or _streams_are_enough(experiment, found):
        return own
    taken = {each.name for each in experiment.workloads}
    name = next(each for each in ("rate", "rate-of-network", "ladder-rate") if each not in taken)
    return (
        CollectivesWorkload(
            kind="collectives", name=name, ops=("all_reduce",), sizes=(MESSAGE_BYTES,)
        ),
    )


def _streams_are_enough(experiment: Experiment, found: Sequence[Network]) -> bool:
    """Are there commands only, and is it sure that all send by sockets?"""
    if any(each.has_steps and not each.is_under_torchrun for each in experiment.workloads):
        return False  # our own ranks have torch
    cluster = experiment.cluster
    if cluster.device == "cpu" or set(cluster.backends) == {"gloo"}:
        return True
    faces = (each.any_face for each in found)
    return all(face is not None and face.is_sockets for face in faces)


def parse_rates_gbps(text: str) -> tuple[float, ...]:
    """`0.2,0.5,1` in Gbit/s, or with units: `200 Mbit/s,1 Gbit/s`. Raises InputError."""
    rates = []
    for word in text.split(","):
        if not word.strip():
            raise InputError(f"--rates {text}: an empty item", hint=_EXAMPLE)
        try:
            value = parse_rate_gbps(word.strip()) if _has_unit(word) else float(word)
        except ValueError as error:
            raise InputError(f"--rates: `{word.strip()}`: {error}", hint=_EXAMPLE) from None
        assert isinstance(value, float), "text with a unit became a number"
        if not LEAST_GBPS <= value <= MOST_GBPS:
            raise InputError(
                f"--rates: {word.strip()} is outside of 1 Mbit/s to 10 Tbit/s", hint=_EXAMPLE
            )
        rates.append(value)
    if len(set(rates)) != len(rates) or not FEWEST_RATES <= len(rates) <= MOST_RATES:
        raise InputError(
            f"--rates takes {FEWEST_RATES} to {MOST_RATES} different rates, not `{text}`",
            hint=_EXAMPLE,
        )
    return tuple(rates)


def check_nodes(experiment: Experiment, machine: MachineFacts) -> None:
    """On the local platform are no links to shape, so nothing of a ladder can run there.

    Raises PlatformError.
    """
    if "emulated" in experiment.platforms and not machine.can_emulate:
        raise PlatformError(
            f"a ladder needs emulated nodes, which are refused here: {machine.refusal}",
            hint=machine.fix,
        )


_EXAMPLE = "--rates 0.1,0.2,0.5,1,2 (Gbit/s)"


def _has_unit(word: str) -> bool:
    return word.strip().endswith(("/s", "bps"))


def default_rates_gbps(experiment: Experiment) -> tuple[float, ...]:
    """Six rates, each as many times the one before, about those that the networks name."""
    named = [
        each.slower_rate_gbps
        for each in experiment.networks
        if isinstance(each, Network) and each.slower_rate_gbps is not None
    ]
    if not named:
        raise InputError(
            f"no network of {experiment.name} names a rate to begin a ladder at",
            hint=f"{_EXAMPLE}, slow enough that the network matters",
        )
    low = max(min(named) / BELOW, LEAST_GBPS)
    high = min(max(min(named) * ABOVE, *named), MOST_GBPS)
    factor = (high / low) ** (1 / (NUM_RUNGS - 1))
    return tuple(float(f"{low * factor**step:.3g}") for step in range(NUM_RUNGS))


def _base(experiment: Experiment, name: str | None) -> Network:
    """Whose MTU, overlay, NICs and delay do all rungs have? The first that has a rate."""
    between = [each for each in experiment.networks if isinstance(each, Network)]
    if name is not None:
        found = next((each for each in between if each.name == name), None)
        if found is None:
            raise InputError(
                f"--network {name}: no network between nodes has this name",
                hint=did_you_mean(name, [each.name for each in between]),
            )
        return found
    with_rate = [each for each in between if each.rate_gbps is not None]
    return next(iter([*with_rate, *between]), Network(name="ladder"))


def _rung(base: Network, rate_gbps: float) -> Network:
    """The base at this rate; a slower receiving direction stays as much slower."""
    receive = None
    if base.receive_rate_gbps is not None and base.rate_gbps is not None:
        receive = float(f"{rate_gbps * base.receive_rate_gbps / base.rate_gbps:.9g}")
    name = show_rate(rate_gbps, 6).lower().replace(" ", "-").replace("/s", "")
    return Network(
        **base.model_dump(exclude=_OF_A_RUNG),
        name=name,
        rate_gbps=rate_gbps,
        receive_rate_gbps=receive,
    )


def _unshaped(base: Network) -> tuple[Network, ...]:
    """The base without a rate: how long is a step where only the host is a limit? None where delay,
    loss or slow pairs are emulated, which an unshaped link has not."""
    if base.needs_netem or base.slow_pairs:
        return ()
    return (Network(**base.model_dump(exclude=_OF_A_RUNG), name=UNSHAPED),)


def _workloads(experiment: Experiment) -> tuple[Workload, ...]:
    kept = tuple(each for each in experiment.workloads if each.has_steps)
    if not kept:
        raise InputError(
            f"{experiment.name} has collectives only, which have no steps",
            hint="a ladder takes a workload of `kind: train` or `kind: command`",
        )
    return kept


def _free(workload: Workload) -> Workload:
    """On all networks: those that it names are gone."""
    changed: Workload = workload.model_copy(update={"networks": None})
    return changed


def _shapes(experiment: Experiment) -> tuple[str, ...]:
    """Those of several nodes; `all` needs the largest shape beside it, whatever that is."""
    shapes = experiment.cluster.shapes
    kept = tuple(text for text in shapes if split_shape(text)[0] > 1)
    if not kept:
        raise InputError(
            f"{experiment.name} has one node only ({', '.join(shapes)}), and no link between nodes",
            hint="--set cluster.shapes=[2x1]",
        )
    return shapes if any(split_shape(text)[1] == "all" for text in kept) else kept
