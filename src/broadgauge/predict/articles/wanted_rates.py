"""Of which networks do articles state no rate, and what do they say of throughput over them?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broadgauge.catalog.articles import articles
from broadgauge.predict.answering.knee import GAIN_RATIO

ONE_NODE = "one node"
NO_LIMIT = "no limit"
PUBLISHED_STEP = "the published step"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRatio:
    """A throughput over another one."""

    nodes: int
    ratio: float
    """1.0: the published step itself."""
    figures: str
    """As printed: `3.46 over 21.34 samples/s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRate:
    """A network of an example whose rate is looked for."""

    network: str
    gpu: str
    """As in the catalog."""
    over: str
    """What a throughput is held against: ONE_NODE, NO_LIMIT (this training on links without one),
    another network of the example at the rate that it has there, or PUBLISHED_STEP: a step of
    `step_time_s`, which has as many tokens as the example's."""
    points: tuple[PublishedRatio, ...]
    assumed: str
    """What of the training is not the article's, for people."""
    remark: str = ""
    step_time_s: float | None = None
    """None: the article tells no step, and `over` is something else."""


GRANITE_ASSUMED = (
    "every sample 1,483 tokens long and none padded, and gradients summed between nodes in "
    "bfloat16 with each micro-batch of at most {tokens} tokens, on every network {remark}"
)
H100_ASSUMED = GRANITE_ASSUMED.format(tokens="35,000", remark="(the article varied that)")
L40S_ASSUMED = GRANITE_ASSUMED.format(
    tokens="24,000", remark="(the article prints 35,000, and varied that)"
)
LLAMA_ASSUMED = "32 samples of 256 tokens a rank and step (their length is not published)"

GEMMA_ASSUMED = "4 sequences of 1,024 tokens a rank and step, none shorter, as its script has them"


def _h100() -> Iterator[WantedRate]:
    def wanted(network: str, row: str) -> WantedRate:
        return WantedRate(
            network=network,
            gpu="h100-sxm",
            over=ONE_NODE,
            points=(_of_one_node("h100-cluster", row, 2),),
            assumed=H100_ASSUMED,
        )

    yield wanted("pod", "pod")
    yield wanted("vnic-nics-1", "vnic")
    rdma, sriov = (_samples_per_s("h100-cluster", row, 2) for row in ("sriov-rdma", "sriov"))
    yield WantedRate(
        network="sriov-rdma-nics-1",
        gpu="h100-sxm",
        over="sriov-nics-1",
        points=(
            PublishedRatio(
                nodes=2,
                ratio=rdma / sriov,
                figures=f"{rdma:g} samples/s with RDMA over {sriov:g} on SR-IOV at 400 Gbit/s",
            ),
        ),
        assumed=H100_ASSUMED,
        remark="RDMA is not emulated: this is TCP at a rate that gains as much, and no NIC has it.",
    )


def _l40s() -> Iterator[WantedRate]:
    for network in ("pod", "vnic"):
        yield WantedRate(
            network=network,
            gpu="l40s",
            over=ONE_NODE,
            points=tuple(_of_one_node("l40s-cluster", network, nodes) for nodes in (2, 4, 8)),
            assumed=L40S_ASSUMED,
        )


def _a40() -> Iterator[WantedRate]:
    hours = {row.network: row.hours for row in articles().completion_hours}
    for network in ("pod", "tcp"):
        yield WantedRate(
            network=network,
            gpu="a40",
            over=NO_LIMIT,
            points=(
                PublishedRatio(
                    nodes=2,
                    ratio=hours["roce"] / hours[network],
                    figures=f"{hours[network]:g} h over {hours['roce']:.3g} h with GPUDirect RDMA, "
                    "which was compute-bound",
                ),
            ),
            assumed=LLAMA_ASSUMED,
        )
    yield WantedRate(
        network="roce",
        gpu="a40",
        over=NO_LIMIT,
        points=(
            PublishedRatio(
                nodes=2,
                ratio=1 / (1 + GAIN_RATIO),
                figures=f"{hours['roce']:.3g} h with GPUDirect RDMA, compute-bound, so within 2 % "
                "of links without a limit",
            ),
        ),
        assumed=LLAMA_ASSUMED,
        remark="The least rate of which that is so; RDMA is not emulated: this is TCP.",
    )


def _gemma() -> Iterator[WantedRate]:
    steps = {row.network: row.seconds for row in articles().step_seconds}
    yield WantedRate(
        network="ethernet",
        gpu="h100-sxm",
        over=PUBLISHED_STEP,
        points=(PublishedRatio(nodes=2, ratio=1.0, figures=f"{steps['eth10']:g} s a step"),),
        assumed=GEMMA_ASSUMED,
        step_time_s=steps["eth10"],
    )


def _of_one_node(system: str, network: str, nodes: int) -> PublishedRatio:
    here, one = _samples_per_s(system, network, nodes), _samples_per_s(system, "none", 1)
    return PublishedRatio(
        nodes=nodes,
        ratio=here / one,
        figures=f"{here:g} samples/s on {nodes} nodes over {one:g} on one node",
    )


def _samples_per_s(system: str, network: str, nodes: int) -> float:
    (found,) = (
        row.samples_per_s
        for row in articles().throughput_samples_per_s
        if (row.system, row.network, row.nodes) == (system, network, nodes)
    )
    return found


WANTED: dict[str, Callable[[], Iterator[WantedRate]]] = {
    "granite-h100": _h100,
    "granite-l40s": _l40s,
    "llama-lora-a40-baseline": _a40,
    "llama-lora-a40": _a40,
    "gemma-12b-fsdp": _gemma,
}
"""By the name of the example that has these networks, or some of them."""
