"""How long does a step take, and what does it wait for? The fast path, for cases of all structures.

Cases are put in groups of one structure (the same program, the same collectives) and each group is
one evaluation. Where time goes is found by taking causes away one after the other: links between
nodes, links within, launches. What each of them adds is its exposed part, so parts add up.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from broadgauge.predict.columns import Columns
from broadgauge.predict.costs import ComputeCosts
from broadgauge.predict.strategies import pipelined, replicated, sharded
from broadgauge.predict.strategies.exchanges import counts, exchanges
from broadgauge.predict.strategies.work import Work
from broadgauge.predict.timeline import Steps, Stream, Timeline, Times

Program = Callable[[Steps, Work], None]
CHUNK = 1024
"""Cases evaluated at once: their matrices stay in the processor's cache."""


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
    host_busy_s: Times
    intra_busy_s: Times
    inter_busy_s: Times
    network_bytes: Times

    @property
    def overlapped_s(self) -> Times:
        """Communication hidden behind compute."""
        busy_s = self.intra_busy_s + self.inter_busy_s
        exposed_s = self.exposed_intra_node_s + self.exposed_network_s
        return np.maximum(0.0, busy_s - exposed_s)


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

    @property
    def program(self) -> Program:
        """What runs its steps."""
        if self.stages > 1:
            return lambda steps, work: pipelined.program(
                steps, work, self.stages, self.chunks, self.micro_batches
            )
        return sharded.program if self.is_sharded else replicated.program


def work_of(columns: Columns, compute: ComputeCosts) -> Work:
    """All that programs need. A part of a micro-batch counts as one, shared out evenly."""
    numbers = counts(columns)
    ratio = columns.micro_batches / numbers["micro_batches"]
    whole = {
        field.name: getattr(compute, field.name) * ratio
        for field in fields(compute)
        if field.name.startswith(("layer_", "head_")) and "launch" not in field.name
    }
    return Work(
        compute=replace(compute, **whole),
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
    rows = np.column_stack(
        [
            columns.is_sharded & ~is_piped,
            stages,
            np.where(is_piped, columns.virtual_stages, 1),
            np.where(is_piped, work.counts["micro_batches"], 0),
            inside.any(axis=1),
            across.any(axis=1),
            inside | across,
        ]
    ).astype(np.int64)
    unique, index = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(index.ravel(), kind="stable")
    starts = np.searchsorted(index.ravel()[order], np.arange(len(unique)))
    members = np.split(order, starts[1:])
    found = {}
    for row, cases in zip(unique.tolist(), members, strict=True):
        present = tuple(name for name, flag in zip(names, row[6:], strict=True) if flag)
        structure = Structure(
            is_sharded=bool(row[0]),
            stages=row[1],
            chunks=row[2],
            micro_batches=row[3],
            is_inside=bool(row[4]),
            is_across=bool(row[5]),
            names=present,
        )
        found[structure] = cases
    return found


def select(work: Work, structure: Structure, cases: npt.NDArray[np.intp]) -> Work:
    """These cases, with the collectives that they have."""
    present = {name: work.collectives[name] for name in structure.names}
    return replace(work, collectives=present).map(lambda array: array[cases])


def evaluate(columns: Columns, compute: ComputeCosts) -> Evaluation:
    """Every case's step."""
    work = work_of(columns, compute)
    names = [field.name for field in fields(Evaluation)]
    table = {name: np.zeros(len(columns)) for name in names}
    for structure, cases in structures(columns, work).items():
        for start in range(0, len(cases), CHUNK):
            part = cases[start : start + CHUNK]
            result = _evaluate(structure, select(work, structure, part))
            for name in names:
                table[name][part] = getattr(result, name)
    return Evaluation(**table)


def _evaluate(structure: Structure, work: Work) -> Evaluation:
    whole = _timeline(structure, work)
    inside = _timeline(structure, work.without_links(intra=False)) if structure.is_across else whole
    alone = _timeline(structure, work.without_links(intra=True)) if structure.names else whole
    storage_s = work.data_s + work.checkpoint_s
    optimizer_s = work.compute.optimizer_s
    busy_s = alone.busy_s[Stream.COMPUTE, 0]
    launched_s = busy_s + storage_s
    if structure.stages > 1:
        launched_s = _timeline(structure, work.without_links(intra=True).launched()).end_s
    return Evaluation(
        step_s=whole.end_s,
        compute_s=busy_s - optimizer_s,
        launch_s=alone.end_s - launched_s,
        exposed_intra_node_s=inside.end_s - alone.end_s,
        exposed_network_s=whole.end_s - inside.end_s,
        bubble_s=launched_s - busy_s - storage_s,
        optimizer_s=optimizer_s,
        storage_s=storage_s,
        host_busy_s=whole.busy_s[Stream.HOST, 0],
        intra_busy_s=whole.busy_s[Stream.INTRA, 0],
        inter_busy_s=whole.busy_s[Stream.INTER, 0],
        network_bytes=whole.sent_bytes,
    )


def _timeline(structure: Structure, work: Work) -> Timeline:
    timeline = Timeline(work.num_cases)
    structure.program(timeline, work)
    return timeline
