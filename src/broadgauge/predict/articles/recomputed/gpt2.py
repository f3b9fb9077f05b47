"""net1-2025: second epochs of GPT-2 on one and two A100, estimates by hand, all-reduces."""

import math

from broadgauge.catalog.articles import AllReduceTime, Articles, HandEstimate
from broadgauge.predict.articles.recomputed.figure import RecomputedFigure
from broadgauge.predict.articles.two_gpus import GPT2_SHAPES
from broadgauge.specs.units import show_time

LARGE = "gpt2-large-708m-ddp"
BF16_BYTES = 2
GIB = 2**30


def epoch_s(tables: Articles, row: str) -> float:
    """One published second epoch."""
    (found,) = (each.seconds for each in tables.epoch2_seconds if each.id == row)
    return found


def epochs_ratio(tables: Articles, one: str, other: str) -> RecomputedFigure:
    """One epoch over another."""
    here, there = epoch_s(tables, one), epoch_s(tables, other)
    return RecomputedFigure(number=here / there, how=f"{here:.2f} over {there:.2f} s")


def speedup_of_two(tables: Articles, one: str, two: str) -> RecomputedFigure:
    """One GPU's epoch over two GPUs', with the efficiency a GPU."""
    ratio = epochs_ratio(tables, one, two)
    return RecomputedFigure(
        number=ratio.number, how=f"{ratio.how}; efficiency {ratio.number / 2:.3f}"
    )


def params_million(tables: Articles, workload: str) -> RecomputedFigure:
    """By GPT-2's published shape, without embeddings."""
    assert workload in tables.workloads
    layers, hidden, _ = GPT2_SHAPES[workload]
    params = 12 * layers * hidden**2
    how = f"{layers} layers × 12 × {hidden:,}²"
    return RecomputedFigure(unit="M", number=params / 1e6, how=how)


def model_gbyte(tables: Articles) -> RecomputedFigure:
    """Weights of the large model in bf16."""
    params = _params(tables)
    gbytes = params * BF16_BYTES / 1e9
    how = f"{params / 1e6:.0f}×10⁶ × {BF16_BYTES} bytes; {gbytes * 1e9 / GIB:.3f} GiB"
    return RecomputedFigure(unit="GB", number=gbytes, how=how)


def epoch_tbyte(tables: Articles) -> RecomputedFigure:
    """As the article counts: twice the model a step."""
    steps = _steps(tables)
    gbytes = model_gbyte(tables).number
    sent = steps * gbytes / 1e3
    how = (
        f"2 × {gbytes:g} GB × {steps:,} steps. Of two ranks each sends 2 (n − 1) / n = 1 times "
        f"its gradients: {sent:.2f} TB"
    )
    return RecomputedFigure(unit="TB", number=2 * sent, how=how)


def nominal_s(tables: Articles, path: str) -> RecomputedFigure:
    """The article's bytes at the article's nominal rate."""
    tbytes = epoch_tbyte(tables).number
    rate = _nominal_gbyte_per_s(tables, path)
    how = f"{tbytes:.3f} TB at {rate:g} GB/s"
    return RecomputedFigure(unit="s", number=tbytes * 1e3 / rate, how=how)


def one_way_s(tables: Articles, path: str) -> RecomputedFigure:
    """What each rank sends, at the rate of one direction."""
    tbytes = epoch_tbyte(tables).number / 2
    rate = _nominal_gbyte_per_s(tables, path)
    both = path == "nvlink3"
    one_way = rate / 2 if both else rate
    meaning = f"{rate:g} GB/s are both directions" if both else "its rate is one direction's"
    how = f"{tbytes:.3f} TB at {one_way:g} GB/s: {meaning}"
    return RecomputedFigure(unit="s", number=tbytes * 1e3 / one_way, how=how)


def half_epoch_s(tables: Articles) -> RecomputedFigure:
    """Half of one GPU's."""
    one = epoch_s(tables, "e-15-4-1")
    return RecomputedFigure(unit="s", number=one / 2, how=f"{one:.2f} s / 2")


def estimated_s(tables: Articles, *, measured: bool, path: str) -> RecomputedFigure:
    """The article's estimate put together again, with its error."""
    estimate: HandEstimate = tables.estimates_net1[int(measured)]
    part = estimate.nvlink3 if path == "nvlink3" else estimate.hdr
    half = half_epoch_s(tables).number
    row = "e-15-5-3" if path == "nvlink3" else "e-15-6-2"
    actual = epoch_s(tables, row)
    total = half + part.comm_s
    error = 100 * (total / actual - 1)
    how = f"{half:.2f} + {part.comm_s:g} s; measured {actual:.2f} s: {error:+.1f} %"
    return RecomputedFigure(unit="s", number=total, how=how.replace("-", "−"))


def from_speed_s(tables: Articles, path: str) -> RecomputedFigure:
    """The second estimate by the printed speeds, which have more digits than the seconds."""
    row = _all_reduce(tables, path, "nccl")
    comm = _steps(tables) * _speed_s(tables, row)
    total = half_epoch_s(tables).number + comm
    actual = epoch_s(tables, "e-15-5-3" if path == "nvlink3" else "e-15-6-2")
    error = f"{100 * (total / actual - 1):+.1f} %".replace("-", "−")
    how = f"{_steps(tables):,} × {1e3 * _speed_s(tables, row):.2f} ms by its speed; {error}"
    return RecomputedFigure(unit="s", number=total, how=how)


def busbw(tables: Articles, path: str, backend: str) -> RecomputedFigure:
    """In 10⁹ byte/s; the algorithm's bandwidth is the same for two ranks."""
    row = _all_reduce(tables, path, backend)
    seconds = _speed_s(tables, row)
    rate = model_gbyte(tables).number / seconds
    gib = model_gbyte(tables).number * 1e9 / GIB
    how = f"2 × {gib:.3f} GiB / {row.twice_gibyte_per_s:g} = {show_time(seconds)}: busbw"
    how += f" {rate:.3g} GB/s, {8 * rate:.3g} Gbit/s"
    return RecomputedFigure(unit="GB/s", number=rate, how=how)


def seconds_by_speed(tables: Articles, path: str, backend: str) -> RecomputedFigure:
    """What the printed speed says of the printed seconds."""
    row = _all_reduce(tables, path, backend)
    seconds = _speed_s(tables, row)
    return RecomputedFigure(
        unit="s", number=seconds, how=f"2 × GiB / {row.twice_gibyte_per_s:g} = {seconds:.3f} s"
    )


def bytes_by_ethernet(tables: Articles) -> RecomputedFigure:
    """Elements that the 25GbE row implies, 10⁶."""
    row = _all_reduce(tables, "eth25", "nccl")
    elements = row.seconds * row.twice_gibyte_per_s / 2 * GIB / BF16_BYTES / 1e6
    how = f"{row.seconds:g} s × {row.twice_gibyte_per_s:g} / 2 GiB of {BF16_BYTES} bytes"
    return RecomputedFigure(unit="M", number=elements, how=how)


def nvlink_over_hdr(tables: Articles) -> RecomputedFigure:
    """Of the measured all-reduces."""
    one = _all_reduce(tables, "nvlink3", "nccl").twice_gibyte_per_s
    other = _all_reduce(tables, "hdr", "nccl").twice_gibyte_per_s
    orders = math.log10(one / other)
    return RecomputedFigure(number=one / other, how=f"{one:g} over {other:g}: {orders:.2f} orders")


def gloo_hdr_over_ethernet(tables: Articles) -> RecomputedFigure:
    """The printed speeds."""
    one = _all_reduce(tables, "hdr", "gloo").twice_gibyte_per_s
    other = _all_reduce(tables, "eth25", "gloo").twice_gibyte_per_s
    how = f"{one:.2f} over {other:.2f}: Gloo gains nothing, so the host or one wire decides both"
    return RecomputedFigure(number=one / other, how=how)


def line_share(tables: Articles, path: str) -> RecomputedFigure:
    """What an all-reduce had of the nominal rate."""
    nominal = tables.systems["baskerville"].networks[path].nominal_gbps
    assert nominal is not None
    rate = 8 * busbw(tables, path, "nccl").number
    return RecomputedFigure(
        unit="of the line", number=rate / nominal, how=f"busbw {rate:.3g} of {nominal:g} Gbit/s"
    )


def batch_of_an_epoch(tables: Articles) -> RecomputedFigure:
    """Steps of one GPU over those of two: 2 where each GPU keeps its batch, 1 if it were split."""
    steps = tables.workloads[LARGE].steps_per_epoch
    how = f"{steps[1]:,} and {steps[2]:,} steps an epoch: each GPU keeps its batch of 16"
    return RecomputedFigure(number=steps[1] / steps[2], how=how)


def memory_of_two_nodes(tables: Articles) -> RecomputedFigure:
    """MiB more than on one GPU."""
    peaks = {each.id: each.peak_memory_mib for each in tables.epoch2_seconds}
    one, two = peaks["e-15-4-1"], peaks["e-15-6-2"]
    return RecomputedFigure(unit="MiB", number=two - one, how=f"{two:,.2f} − {one:,.2f} MiB")


def _all_reduce(tables: Articles, path: str, backend: str) -> AllReduceTime:
    (found,) = (row for row in tables.all_reduce if (row.path, row.backend) == (path, backend))
    return found


def _speed_s(tables: Articles, row: AllReduceTime) -> float:
    return 2 * _params(tables) * BF16_BYTES / GIB / row.twice_gibyte_per_s


def _params(tables: Articles) -> float:
    params = tables.workloads[LARGE].params
    assert params is not None
    return params


def _steps(tables: Articles) -> int:
    return tables.workloads[LARGE].steps_per_epoch[2]


def _nominal_gbyte_per_s(tables: Articles, path: str) -> float:
    network = tables.systems["baskerville"].networks[path]
    if network.nominal_gbyte_per_s is not None:
        return network.nominal_gbyte_per_s
    assert network.nominal_gbps is not None
    return network.nominal_gbps / 8
