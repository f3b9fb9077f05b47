"""How long does a step take, and what does it wait for? The fast path, for cases of all structures.

Cases are put in groups of one structure (the same program, the same collectives) and each group is
one evaluation. Where time goes is found by taking causes away one after the other: links between
nodes, links within, launches. What each of them adds is its exposed part, so parts add up.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.costs.slowest import slowest_rank_ratio
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.timeline.storage_stalls import with_storage
from broadgauge.predict.timeline.strategies import pipelined, replicated, sharded
from broadgauge.predict.timeline.strategies.buckets import bucket_copies_s
from broadgauge.predict.timeline.strategies.exchanges import counts, exchanges
from broadgauge.predict.timeline.strategies.work import Work
from broadgauge.predict.timeline.timeline import Steps, Stream, Timeline

Program = Callable[[Steps, Work], None]
CHUNK = 2048
"""Cases evaluated at once: their matrices stay in the processor's cache."""
PIPELINE_FILL = {False: 1, True: 3}
PIPELINE_PERIOD = {False: 1, True: 2}
"""Micro-batches over stages after which a pipeline is steady, and in which it then repeats itself;
interleaved ones (True) do so every second round. tests/predict/timeline/test_simulation.py holds
both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Seconds and bytes of a step, one entry a case. Parts add up to `step_s`."""

    step_s: Times
    compute_s: Times
    launch_s: Times
    exposed_intra_node_s: Times
    exposed_network_s: Times
    bubble_s: Times
    optimizer_s: Times
    storage_s: Times
    storage_low_s: Times
    storage_high_s: Times
    """From where to where it may lie; as measured stalls say, where it is not modelled."""
    storage_busy_s: Times
    """Hidden loading included."""
    host_busy_s: Times
    intra_busy_s: Times
    inter_busy_s: Times
    network_bytes: Times
    overlapped_s: Times
    """Communication hidden behind compute."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Structure:
    """What cases must agree in to be evaluated together."""

    is_sharded: bool
    stages: int
    chunks: int
    micro_batches: int
    """Of pipelines; 0: any number."""
    names: tuple[str, ...]
    """Collectives that take time."""
    is_inside: bool
    is_across: bool

    is_folded: bool = False
    """Pipelines with more micro-batches than that, by a number of periods."""

    @property
    def program(self) -> Program:
        """What runs its steps."""
        if self.stages > 1:
            return lambda steps, work: pipelined.program(
                steps, work, self.stages, self.chunks, self.micro_batches
            )
        return sharded.program if self.is_sharded else replicated.program


def work_of(columns: Columns, compute: ComputeCosts) -> Work:
    """All that programs need.

    A part of a micro-batch counts as one, shared out evenly. Ranks wait for the slowest of them.
    """
    numbers = counts(columns)
    ratio = columns.micro_batches / numbers["micro_batches"]
    ratio = ratio * slowest_rank_ratio(columns.nodes * columns.gpus_per_node)
    whole = {
        field.name: getattr(compute, field.name) * ratio
        for field in fields(compute)
        if field.name.startswith(("layer_", "head_")) and "launch" not in field.name
    }
    bucket_copy_s, gradients_copy_s = bucket_copies_s(columns)
    return Work(
        compute=replace(compute, **whole),
        bucket_copy_s=bucket_copy_s,
        gradients_copy_s=gradients_copy_s,
        collectives=exchanges(columns),
        counts=numbers,
        data_s=np.array([case.data_s for case in columns.cases], dtype=np.float64),
        checkpoint_s=np.array([case.checkpoint_s for case in columns.cases], dtype=np.float64),
    )


def structures(columns: Columns, work: Work) -> dict[Structure, npt.NDArray[np.intp]]:
    """Which cases have which structure?"""
    names = tuple(work.collectives)
    costs = work.collectives.values()
    inside = np.stack([cost.intra_s > 0 for cost in costs], axis=1)
    across = np.stack([cost.inter_s > 0 for cost in costs], axis=1)
    stages = columns.pipeline_parallel.astype(np.int64)
    is_piped = stages > 1
    micro_batches = work.counts["micro_batches"].astype(np.int64)
    is_interleaved = columns.virtual_stages > 1
    fill = stages * np.where(is_interleaved, PIPELINE_FILL[True], PIPELINE_FILL[False])
    period = stages * np.where(is_interleaved, PIPELINE_PERIOD[True], PIPELINE_PERIOD[False])
    kept = np.where(is_piped, fill + (micro_batches - fill) % period, 0)
    is_folded = is_piped & (micro_batches > kept + period)
    rows = np.column_stack(
        [
            columns.is_sharded & ~is_piped,
            stages,
            np.where(is_piped, columns.virtual_stages, 1),
            np.where(is_folded | ~is_piped, kept, micro_batches),
            is_folded,
            inside.any(axis=1),
            across.any(axis=1),
            (inside | across) & ~is_piped[:, None],
        ]
    ).astype(np.int64)
    unique, index = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(index.ravel(), kind="stable")
    starts = np.searchsorted(index.ravel()[order], np.arange(len(unique)))
    members = np.split(order, starts[1:])
    found = {}
    for row, cases in zip(unique.tolist(), members, strict=True):
        present = tuple(name for name, flag in zip(names, row[7:], strict=True) if flag)
        structure = Structure(
            is_sharded=bool(row[0]),
            stages=row[1],
            chunks=row[2],
            micro_batches=row[3],
            is_folded=bool(row[4]),
            is_inside=bool(row[5]),
            is_across=bool(row[6]),
            names=pipelined.NAMES if row[1] > 1 else present,
        )
        found[structure] = cases
    return found


def select(work: Work, structure: Structure, cases: npt.NDArray[np.intp]) -> Work:
    """These cases, with the collectives that they have."""
    present = {name: work.collectives[name] for name in structure.names}
    return replace(work, collectives=present).map(lambda array: array[cases])


def evaluate(
    columns: Columns, compute: ComputeCosts, *, communication_ratio: Times | None = None
) -> Evaluation:
    """Every case's step. `communication_ratio` stretches all collectives of a case."""
    work = work_of(columns, compute)
    if communication_ratio is not None:
        work = work.with_communication(communication_ratio)
    names = [field.name for field in fields(Evaluation)]
    table = {name: np.zeros(len(columns)) for name in names}
    for structure, cases in structures(columns, work).items():
        for start in range(0, len(cases), CHUNK):
            part = cases[start : start + CHUNK]
            result = _evaluate(structure, select(work, structure, part))
            for name in names:
                table[name][part] = getattr(result, name)
    return with_storage(Evaluation(**table), columns)


def _evaluate(structure: Structure, work: Work) -> Evaluation:
    """One timeline, or two whose difference is a pipeline's period, as often as it fits."""
    whole = _not_folded(structure, work)
    return replace(whole, overlapped_s=np.maximum(0.0, whole.overlapped_s))


def _not_folded(structure: Structure, work: Work) -> Evaluation:
    first = _parts(structure, work)
    if not structure.is_folded:
        return first
    period = structure.stages * PIPELINE_PERIOD[structure.chunks > 1]
    longer = replace(structure, micro_batches=structure.micro_batches + period)
    second = _parts(longer, work)
    periods = (work.counts["micro_batches"] - structure.micro_batches) / period
    extended = {
        field.name: (1 - periods) * getattr(first, field.name)
        + periods * getattr(second, field.name)
        for field in fields(Evaluation)
    }
    return Evaluation(**extended)


def _parts(structure: Structure, work: Work) -> Evaluation:
    """The variants stand beside each other on one timeline: many small arrays cost more."""
    is_piped = structure.stages > 1
    alone = work.without_links(intra=True)
    variants = [alone] if structure.names else []
    variants += [work.without_links(intra=False)] if structure.is_across else []
    variants += [alone.launched()] if is_piped else []
    timeline = Timeline(work.num_cases * (1 + len(variants)))
    structure.program(timeline, work.stacked(variants) if variants else work)
    ends = timeline.end_s.reshape(-1, work.num_cases)
    kernels = timeline.busy_s[Stream.COMPUTE, 0].reshape(-1, work.num_cases)
    whole_s, alone_s = ends[0], ends[1 if structure.names else 0]
    inside_s = ends[2] if structure.is_across else whole_s
    busy_s = kernels[-1] if is_piped else kernels[1 if structure.names else 0]
    storage_s = work.data_s + work.checkpoint_s
    launched_s = ends[-1] if is_piped else busy_s + storage_s
    optimizer_s = work.compute.optimizer_s
    own = slice(0, work.num_cases)
    intra_busy_s = timeline.busy_s[Stream.INTRA, 0][own]
    inter_busy_s = timeline.busy_s[Stream.INTER, 0][own]
    hidden_s = intra_busy_s + inter_busy_s - (whole_s - alone_s)
    return Evaluation(
        step_s=whole_s,
        compute_s=busy_s - optimizer_s,
        launch_s=alone_s - launched_s,
        exposed_intra_node_s=inside_s - alone_s,
        exposed_network_s=whole_s - inside_s,
        bubble_s=launched_s - busy_s - storage_s,
        optimizer_s=optimizer_s,
        storage_s=storage_s,
        storage_low_s=storage_s,
        storage_high_s=storage_s,
        storage_busy_s=storage_s,
        host_busy_s=timeline.busy_s[Stream.HOST, 0][own],
        intra_busy_s=intra_busy_s,
        inter_busy_s=inter_busy_s,
        overlapped_s=hidden_s,
        network_bytes=timeline.sent_bytes[own],
    )
