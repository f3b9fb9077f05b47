"""redhat-network-2025: throughputs of Granite 8B on L40S and H100 nodes."""

from itertools import pairwise

from broadgauge.catalog.articles import Articles, Workload
from broadgauge.catalog.models import find_model
from broadgauge.predict.articles.recomputed.figure import RecomputedFigure

L40S, H100 = "l40s-cluster", "h100-cluster"
STATE_BYTES = 12
"""Of a parameter, offloaded: fp32 weights and Adam's two moments (FSDP2 offloads all of them)."""
POD_MEMORY_BYTES = 10 * 2**30
"""What the article's PyTorchJob requests."""


def samples_per_s(tables: Articles, system: str, network: str, nodes: int) -> float:
    """One published throughput."""
    (found,) = (
        row.samples_per_s
        for row in tables.throughput_samples_per_s
        if (row.system, row.network, row.nodes) == (system, network, nodes)
    )
    return found


def over_network(
    tables: Articles, system: str, network: str, other: str, nodes: int
) -> RecomputedFigure:
    """A network's throughput over another's."""
    here = samples_per_s(tables, system, network, nodes)
    there = samples_per_s(tables, system, other, nodes)
    how = f"{here:g} over {there:g} samples/s on {nodes} nodes"
    return RecomputedFigure(number=here / there, how=how)


def gain(tables: Articles, system: str, network: str, other: str, nodes: int) -> RecomputedFigure:
    """The same, less one, in percent."""
    ratio = over_network(tables, system, network, other, nodes)
    how = f"{ratio.how}: {ratio.number:.4g}×"
    return RecomputedFigure(unit="%", number=100 * (ratio.number - 1), how=how)


def speedup(tables: Articles, system: str, network: str, nodes: int) -> RecomputedFigure:
    """Over one node, with the efficiency a node."""
    here = samples_per_s(tables, system, network, nodes)
    one = samples_per_s(tables, system, "none", 1)
    how = f"{here:g} over {one:g} samples/s on one node; efficiency {here / one / nodes:.3f}"
    return RecomputedFigure(number=here / one, how=how)


def efficiency(tables: Articles, network: str, nodes: int) -> RecomputedFigure:
    """Of a node of the L40S series, with those of fewer nodes."""
    one = samples_per_s(tables, L40S, "none", 1)
    sizes = [size for size in (2, 4, 8) if size <= nodes]
    each = [samples_per_s(tables, L40S, network, size) / one / size for size in sizes]
    words = ", ".join(f"{share:.3f} on {size}" for share, size in zip(each, sizes, strict=True))
    return RecomputedFigure(
        unit="of linear", number=each[-1], how=f"over {one:g} samples/s: {words} nodes"
    )


def least_step_of_the_gap(tables: Articles) -> RecomputedFigure:
    """Does vNIC over pod grow with each doubling? The least of its growths."""
    ratios = [over_network(tables, L40S, "vnic", "pod", nodes).number for nodes in (2, 4, 8)]
    words = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    growths = [after / before for before, after in pairwise(ratios)]
    return RecomputedFigure(
        number=min(growths), how=f"{words} times the pod network on 2, 4 and 8 nodes"
    )


def most_kept_by_a_doubling(tables: Articles) -> RecomputedFigure:
    """Does the pod network's efficiency fall with each doubling? The largest of its ratios."""
    shares = [1.0, *(efficiency(tables, "pod", nodes).number for nodes in (2, 4, 8))]
    kept = [after / before for before, after in pairwise(shares)]
    return RecomputedFigure(number=max(kept), how=efficiency(tables, "pod", 8).how)


def over_nominal(tables: Articles) -> RecomputedFigure:
    """SR-IOV over vNIC, divided by how much more its NIC carries nominally."""
    ratio = over_network(tables, H100, "sriov", "vnic", 2).number
    networks = tables.systems[H100].networks
    fast, slow = networks["sriov"].nominal_gbps, networks["vnic"].nominal_gbps
    assert fast is not None
    assert slow is not None
    how = f"{ratio:.3g} times the throughput, by a NIC of {fast / slow:g} times the nominal rate"
    return RecomputedFigure(number=ratio / (fast / slow), how=how)


def optimizer_steps(tables: Articles) -> RecomputedFigure:
    """Of its one epoch."""
    work = _work(tables)
    assert work.samples is not None
    assert work.effective_batch_size_samples is not None
    steps = work.samples / work.effective_batch_size_samples
    how = f"{work.samples:,} samples in batches of {work.effective_batch_size_samples:,}"
    return RecomputedFigure(
        unit="steps",
        number=steps,
        how=f"{how}, {work.num_warmup_steps} steps of warm-up configured",
    )


def samples_in_a_batch(tables: Articles) -> RecomputedFigure:
    """How many of mean length fit under the token limit of a GPU?"""
    work = _work(tables)
    assert work.max_batch_len_tokens is not None
    assert work.mean_tokens_per_sample is not None
    how = f"{work.max_batch_len_tokens:,} tokens of {work.mean_tokens_per_sample:,} a sample"
    return RecomputedFigure(
        unit="samples", number=work.max_batch_len_tokens / work.mean_tokens_per_sample, how=how
    )


def offloaded_over_request(tables: Articles) -> RecomputedFigure:
    """What a sharding group offloads to its node, over the memory that its pod requests."""
    assert "granite-8b-ilab" in tables.workloads
    params = find_model("granite-3.1-8b").params
    offloaded_bytes = params * STATE_BYTES
    how = (
        f"{params / 1e9:.3g}×10⁹ parameters of {STATE_BYTES} bytes (fp32 weights, two moments), "
        f"sharded within a node: {offloaded_bytes / 2**30:.0f} GiB beside a request of 10"
    )
    return RecomputedFigure(number=offloaded_bytes / POD_MEMORY_BYTES, how=how)


def _work(tables: Articles) -> Workload:
    return tables.workloads["granite-8b-ilab"]
