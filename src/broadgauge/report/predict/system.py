"""What does `broadgauge calibrate` print? The best of each kind, with its spread."""

from collections.abc import Iterator

from rich.console import Console

from broadgauge.catalog.busbw import bus_factor
from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.specs.machines.system import CollectiveTime, PathTimes, System, Timing
from broadgauge.specs.units import show_bandwidth, show_ratio, show_size, show_time

RESTLESS_RATIO = 1.5
"""A quartile so far above the median: something else used the machine."""


def print_system(system: System, console: Console) -> None:
    """Its device, then its paths."""
    device = system.device
    what = f"{device.count} × " if device.count > 1 else ""
    threads = f"{device.threads} thread{'s' * (device.threads > 1)} a rank"
    sentence(f"{system.machine.hostname}: {what}{device.name}, {threads}", console)
    heading("One rank", console)
    print_table(("what", "figure", "quartiles"), list(_compute_rows(system)), console)
    if system.paths:
        heading("Paths, busbw of the largest size and time of the smallest", console)
        head = ("path", "collective", "largest", "busbw", "smallest", "time")
        rows = [row for path in system.paths for row in _path_rows(path)]
        print_table(head, rows, console)
    restless = sum(timing.high_s > RESTLESS_RATIO * timing.median_s for timing in timings(system))
    notes = list(system.notes)
    if restless:
        total = sum(1 for _ in timings(system))
        notes.append(
            f"{restless} of {total} timings have a quartile {RESTLESS_RATIO} times their median: "
            "something else used this machine; measure again when it is quiet"
        )
    for note in notes:
        sentence(f"note: {note}", console, "dim")


def timings(system: System) -> Iterator[Timing]:
    """Those of one rank's device."""
    compute = system.compute
    for gemm in compute.gemms:
        yield from (gemm.forward, gemm.backward)
    for attention in compute.attention:
        yield from (attention.forward, attention.backward)
    yield from (copy.time for copy in compute.copies)
    yield from (optimizer.time for optimizer in compute.optimizer)
    yield from (step.time for step in compute.steps)


def _compute_rows(system: System) -> Iterator[tuple[str, str, str]]:
    compute = system.compute
    for dtype in dict.fromkeys(gemm.dtype for gemm in compute.gemms):
        mine = [gemm for gemm in compute.gemms if gemm.dtype == dtype]
        best = max(mine, key=lambda gemm: gemm.flops / gemm.forward.median_s)
        rate = best.flops / best.forward.median_s
        shape = f"{best.tokens} × {best.inputs} × {best.outputs}"
        yield (
            f"{dtype} products, best of {len(mine)}: {shape}",
            _flops(rate),
            _spread(best.forward),
        )
    longest = max(compute.attention, key=lambda each: each.seq_len, default=None)
    if longest is not None:
        timing = longest.forward
        what = f"{longest.dtype} attention, {longest.batch} × {longest.seq_len} tokens"
        yield (what, show_time(timing.median_s), _spread(timing))
    copy = max(compute.copies, key=lambda each: each.size_bytes)
    rate = 2 * copy.size_bytes / copy.time.median_s / 1e9
    what = f"copy of {show_size(copy.size_bytes)}, read and written"
    yield (what, show_bandwidth(rate), _spread(copy.time))
    optimizer = max(compute.optimizer, key=lambda each: each.parameters)
    what = f"AdamW of {optimizer.parameters / 1e6:.3g} M parameters"
    yield (what, show_time(optimizer.time.median_s), _spread(optimizer.time))
    launch = compute.launch
    yield ("launch of one operation", show_time(launch.operation.median_s), "")
    whole = launch.layer_forward.median_s + launch.layer_backward.median_s
    yield ("launch of a block, both passes", show_time(whole), "")
    for step in compute.steps:
        model = step.model
        what = f"step, {model.layers} × {model.hidden}, {step.batch} × {model.seq_len}"
        yield (f"{what}, {step.dtype}", show_time(step.time.median_s), _spread(step.time))


def _path_rows(path: PathTimes) -> Iterator[tuple[str, ...]]:
    for op in dict.fromkeys(each.op for each in path.collectives):
        mine = sorted(
            (each for each in path.collectives if each.op == op), key=lambda each: each.size_bytes
        )
        yield (
            f"{path.name}, {path.nodes}x{path.ranks_per_node}",
            op,
            show_size(mine[-1].size_bytes),
            show_bandwidth(_busbw_gbyte_per_s(path, mine[-1])),
            show_size(mine[0].size_bytes),
            show_time(mine[0].time.median_s),
        )


def _busbw_gbyte_per_s(path: PathTimes, each: CollectiveTime) -> float:
    ranks = path.nodes * path.ranks_per_node
    return each.size_bytes * bus_factor(each.op, ranks) / each.time.median_s / 1e9


def _spread(timing: Timing) -> str:
    low, high = timing.low_s / timing.median_s - 1, timing.high_s / timing.median_s - 1
    return f"{show_ratio(low, 2)} to +{show_ratio(high, 2)}"


def _flops(rate: float) -> str:
    for unit, name in ((1e12, "TFLOP/s"), (1e9, "GFLOP/s")):
        if rate >= unit:
            return f"{rate / unit:.3g} {name}"
    return f"{rate:.3g} FLOP/s"
