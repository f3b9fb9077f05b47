"""How long may a cluster be held for so much money, whatever becomes of the tool?

A cluster is paid for from the moment its machines start until the last is gone. Of that the tool
can limit only what runs between: so the time before and after is taken off beforehand, at its
longest, and what is left is the limit that the cluster itself keeps.

    machines start │ SkyPilot's runtime │ files are sent │ setup and run │ idle, then gone
                   └─ START_S ──────────┴─ idle ─────────┴─ limit_s ─────┴─ idle ──────
"""

from dataclasses import dataclass

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.catalog.gpus import find_gpu
from broadgauge.specs.cost import Cost
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment

START_S = 600.0
"""A guess at the longest that machines and SkyPilot's runtime take: nothing ran on a cloud."""
LOOKS_EVERY_MINUTES = 1
"""Source: SkyPilot 0.14.1, skylet/events.py, StopEvent: idleness is looked at once a minute."""
SHORTEST_S = 60.0
"""Less is no time to set anything up in."""
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrice:
    """What one node costs at most, and who says so."""

    usd_per_node_hour: float
    words: str


def node_price(experiment: Experiment) -> NodePrice | None:
    """The experiment's `cost`, else the catalog's of its accelerators; None: nobody knows one.

    Raises InputError for a node that the catalog does not know.
    """
    said, settings = experiment.cost or Cost(), experiment.skypilot
    if said.usd_per_node_hour is not None:
        return _price(said.usd_per_node_hour, "as the experiment says")
    if said.usd_per_gpu_hour is not None and settings.gpus_per_node:
        return _price(said.usd_per_gpu_hour * settings.gpus_per_node, "as the experiment says")
    if said.node is not None:
        return _price_of_node(said.node)
    return (
        None if settings.accelerator is None else _price_of_gpus(settings.accelerator, experiment)
    )


def _price_of_node(name: str) -> NodePrice | None:
    catalog = shipped_catalog()
    node = catalog.node(name).name
    found = min(
        (each for each in catalog.prices if each.node == node),
        key=lambda each: each.price_usd_per_hour,
        default=None,
    )
    return None if found is None else _price(found.price_usd_per_hour, found.name)


def _price_of_gpus(accelerator: str, experiment: Experiment) -> NodePrice | None:
    gpu = find_gpu(accelerator)
    found = None if gpu is None else shipped_catalog().gpu_price(gpu.name)
    if found is None:
        return None
    usd = found.price_usd_per_hour * experiment.skypilot.gpus_per_node
    return _price(usd, f"{found.price.name}, {found.price.date or 'no date'}, the lowest known")


def _price(usd: float, whose: str) -> NodePrice:
    return NodePrice(usd_per_node_hour=usd, words=f"${usd:.4g} a node and hour ({whose})")


def reserve_s(idle_minutes: int) -> float:
    """What of the paid time can't be limited by what runs in it."""
    return START_S + 2 * 60.0 * (idle_minutes + LOOKS_EVERY_MINUTES)


def hold_limit_s(experiment: Experiment, nodes: int, *, spent_usd: float = 0.0) -> int:
    """How long setup and run may last on a cluster of so many nodes.

    `spent_usd`: by the run's other clusters. Raises InputError where nothing is left, or where the
    cost is limited and no price is known.
    """
    settings = experiment.skypilot
    paid_s = settings.max_held_s
    what = f"`skypilot.max_held_s: {settings.max_held_s:g}`"
    if settings.max_cost_usd is not None:
        price = _known_price(experiment)
        left_usd = settings.max_cost_usd - spent_usd
        for_money_s = left_usd / (price.usd_per_node_hour * nodes) * HOUR_S
        if for_money_s < paid_s:
            paid_s = for_money_s
            what = (
                f"${left_usd:.2f} (of ${settings.max_cost_usd:.2f}) at {price.words} "
                f"and {nodes} node{'s' * (nodes > 1)}"
            )
    limit_s = paid_s - reserve_s(settings.idle_minutes)
    if limit_s < SHORTEST_S:
        raise InputError(
            f"skypilot: {what} pays for {max(0.0, paid_s) / 60:.0f} minutes, and "
            f"{reserve_s(settings.idle_minutes) / 60:.0f} of them are kept for start, files and "
            "the idle end",
            hint="more of it, or fewer `skypilot.idle_minutes`",
        )
    return int(limit_s)


def _known_price(experiment: Experiment) -> NodePrice:
    """Raises InputError."""
    price = node_price(experiment)
    if price is None or price.usd_per_node_hour <= 0:
        raise InputError(
            "a limit of cost needs a price, and none is known of these machines",
            hint="`--set cost.usd_per_node_hour=30`: SkyPilot takes none that costs more",
        )
    return price
