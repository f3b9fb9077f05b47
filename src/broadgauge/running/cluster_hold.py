"""What will a run hold of a cluster, how long, and what does that cost? No cluster is asked."""

from dataclasses import dataclass

from broadgauge.engine.expected_time import guessed_s
from broadgauge.manifests.job import gpus_of
from broadgauge.results.price import Price, said_price
from broadgauge.specs.cost import Cost
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.plan import Plan

HOUR_S = 3600.0
GPU_PRICE_ON_CPUS = (
    "the price is a GPU's, and CPUs compute here; `usd_per_node_hour` of `cost` counts for them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHold:
    """The pods of a run's one job, from its first launch to its last."""

    num_pods: int
    gpus_per_pod: int
    """0: CPUs compute."""
    expected_s: float | None
    """Of the whole run, other platforms' launches too: the pods stay meanwhile. None: nobody knows
    how long a command of the user's takes."""
    price: Price | None
    """None: the experiment has none, or one that does not count here."""
    why_no_price: str | None
    """Of one that does not count; None: it has none, or it counts."""

    @property
    def num_gpus(self) -> int:
        return self.num_pods * self.gpus_per_pod

    @property
    def gpu_hours(self) -> float | None:
        """None: the time is not known."""
        return None if self.expected_s is None else self.num_gpus * self.expected_s / HOUR_S

    @property
    def price_usd_per_hour(self) -> float | None:
        """Of all pods, each on a node of its own; None: no price is known."""
        if self.price is None:
            return None
        return self.price.usd_per_hour(num_nodes=self.num_pods, num_gpus=self.num_gpus)

    @property
    def cost_usd(self) -> float | None:
        """None: the time or a price is not known."""
        if self.expected_s is None or self.price_usd_per_hour is None:
            return None
        return self.price_usd_per_hour * self.expected_s / HOUR_S


def cluster_hold(experiment: Experiment, plan: Plan) -> ClusterHold | None:
    """None: nothing of this plan runs in pods. Raises InputError where its price is that of a node
    which the catalog has not."""
    cases = [case for case in plan.cases if case.platform in (None, "kubernetes")]
    if "kubernetes" not in experiment.platforms or not cases:
        return None
    gpus_per_pod = max(gpus_of(experiment.kubernetes, case) for case in cases)
    found = said_price(plan.cost or Cost(), "as the experiment says", is_gpu=gpus_per_pod > 0)
    return ClusterHold(
        num_pods=max(case.nodes for case in cases),
        gpus_per_pod=gpus_per_pod,
        expected_s=None if guessed_s(plan) else plan.expected_s,
        price=None if isinstance(found, str) else found,
        why_no_price=GPU_PRICE_ON_CPUS if isinstance(found, str) else None,
    )
