"""Which experiment is the ladder of another? Its networks become one network at several rates."""

from collections.abc import Sequence

from broadgauge.specs.base import did_you_mean
from broadgauge.specs.cluster import split_shape
from broadgauge.specs.errors import InputError, PlatformError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machine import MachineFacts
from broadgauge.specs.network import Network
from broadgauge.specs.units import parse_rate_gbps, show_rate
from broadgauge.specs.workload import Workload

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
_LONGEST_NAME = 63
_OF_A_RUNG = {"name", "rate_gbps", "rate_inferred_from", "receive_rate_gbps", "description"}
"""What a rung does not have of the network whose ladder it stands on."""


def as_ladder(
    experiment: Experiment, rates_gbps: Sequence[float] = (), network_name: str | None = None
) -> Experiment:
    """The experiment on rungs: what has no steps or no link is left out of it.

    Raises InputError where nothing would be left, or no rate is named anywhere.
    """
    base = _base(experiment, network_name)
    rates = tuple(rates_gbps) or default_rates_gbps(experiment)
    changed: Experiment = experiment.model_copy(
        update={
            "name": experiment.name[: _LONGEST_NAME - len(NAME_SUFFIX)] + NAME_SUFFIX,
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


def check_nodes(machine: MachineFacts) -> None:
    """On the local platform are no links to shape, so nothing of a ladder can run there.

    Raises PlatformError.
    """
    if not machine.can_emulate:
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
