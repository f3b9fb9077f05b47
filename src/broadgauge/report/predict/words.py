"""How is a prediction put in words? The same in the terminal, on the page and in files."""

from collections.abc import Iterator, Sequence

from broadgauge.catalog.widenings import known_widenings
from broadgauge.predict.answering.answers import Answer, Answers, DoesNotFit, over_bytes
from broadgauge.predict.answering.knee import GAIN_RATIO, BandwidthCurve
from broadgauge.predict.answering.labels import told_beside_place, worded
from broadgauge.predict.answering.settings import on_any_network
from broadgauge.predict.case import Bottleneck
from broadgauge.predict.intervals.rate_range import NETWORK_TERMS, rate_range_gbyte_per_s
from broadgauge.predict.prediction import Interval, MemoryUse, Prediction
from broadgauge.specs.units import TIME_UNITS_S, show_count, show_rate, show_ratio, show_time

GIB = 2.0**30
NOTHING = "–"
NEAREST = "↳"
"""Before a setting that nobody asked for."""
NEAREST_WORDS = (
    f"{NEAREST} not asked for: the nearest settings that fit, on the same GPUs, on more nodes, or "
    "of another training (shorter sequences, adapters)"
)
MOST_NAMED = 4
LEAST_WAIT = 0.03
"""Of a step: what is waited for the network below it is not worth a word."""
UNKNOWN = "unknown"
BOTTLENECKS: dict[Bottleneck, str] = {
    Bottleneck.COMPUTE: "compute",
    Bottleneck.MEMORY: "GPU memory's speed",
    Bottleneck.LAUNCH: "kernel launches",
    Bottleneck.NETWORK: "network",
    Bottleneck.INTRA_NODE: "links in the node",
    Bottleneck.PIPELINE: "pipeline bubble",
    Bottleneck.STORAGE: "storage",
}
ADVICE: dict[Bottleneck, str] = {
    Bottleneck.COMPUTE: "the GPUs' arithmetic",
    Bottleneck.MEMORY: "the speed of the GPUs' own memory: larger batches or fused kernels help",
    Bottleneck.LAUNCH: "the CPU, which launches kernels too slowly: compile, or a larger batch",
    Bottleneck.NETWORK: "the network between nodes",
    Bottleneck.INTRA_NODE: "the links between GPUs of a node",
    Bottleneck.PIPELINE: "pipeline stages that wait for each other: more micro-batches help",
    Bottleneck.STORAGE: "storage: data or checkpoints",
}


def show_interval(interval: Interval) -> str:
    """`1.18 to 2.00 s`: one unit for both ends, that of the point, where both are near it."""
    word = show_time(interval.value).partition(" ")[2]
    scale = TIME_UNITS_S[word]
    low, high = interval.low / scale, interval.high / scale
    if low >= 0.1 and high < 1000:
        return f"{show_count(low)} to {show_count(high)} {word}"
    return f"{show_time(interval.low)} to {show_time(interval.high)}"


def show_gib(size_bytes: float) -> str:
    """`70.6 GiB`: what vendors call GB of a GPU."""
    size = size_bytes / GIB
    return f"{size:,.0f} GiB" if size >= 1000 else f"{size:.3g} GiB"


def memory_words(use: MemoryUse) -> str:
    """`fits, 70.6 of 80 GiB`."""
    total = show_gib(use.total_bytes).removesuffix(" GiB")
    held = f"{total} of {show_gib(use.capacity_bytes)}"
    return f"fits, {held}" if use.is_fitting else f"no, {held}"


def fitting_first(answers: Sequence[Answer]) -> list[Answer]:
    """Those that fit in their order, then the others by what they are over."""
    return sorted(answers, key=over_bytes)


def with_nearest(shown: Sequence[Answer], over: Sequence[DoesNotFit]) -> Iterator[Answer]:
    """Below each that does not fit the nearest settings that do."""
    below = {each.answer.prediction.case: each.nearest for each in over}
    for answer in shown:
        yield answer
        yield from below.get(answer.prediction.case, ())


def memory_parts(use: MemoryUse) -> str:
    """Largest first."""
    parts = {
        "parameters": use.parameters_bytes,
        "gradients": use.gradients_bytes,
        "optimizer": use.optimizer_bytes,
        "activations": use.activations_bytes,
        "buffers": use.buffers_bytes,
        "margin": use.margin_bytes,
    }
    by_size = sorted(parts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {show_gib(size)}" for name, size in by_size if size > 0)


def bottleneck(answer: Answer) -> str:
    return BOTTLENECKS[answer.prediction.bound]


def label_words(answer: Answer) -> str:
    """`roce-400g, 8 nodes`: what tells it from the others."""
    if answer.setting is not None:
        return f"{NEAREST} with {answer.setting.words}"
    label = dict(answer.label)
    case = answer.prediction.case
    if case.nodes == 1 and "nodes" in label:
        label.pop("network", None)
    if "nodes" in label and "GPUs a node" in label:
        del label["GPUs a node"]
        label["nodes"] = f"{case.nodes}x{case.gpus_per_node}"
    return ", ".join(worded(title, value) for title, value in label.items())


def common_words(answers: Answers) -> str:
    """What all cases share."""
    return ", ".join(worded(title, value) for title, value in answers.common.items())


def limits(answers: Sequence[Answer]) -> Iterator[str]:
    """What cases wait for, those that wait for the same together."""
    groups: dict[tuple[Bottleneck, bool], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.prediction.bound, _waits(answer) >= LEAST_WAIT), []).append(
            answer
        )
    for (bound, is_waiting), group in groups.items():
        advice = ADVICE[bound]
        if bound is Bottleneck.COMPUTE:
            advice += _beside(group) if is_waiting else ": a faster network would not help"
        if len(group) == len(answers):
            everywhere = "" if len(answers) == 1 else "everywhere "
            yield f"{everywhere}the limit is {advice}"
            continue
        labels = [label_words(answer) for answer in group]
        shown = labels if len(labels) <= MOST_NAMED else [*labels[:2], f"{len(labels) - 2} more"]
        yield f"{'; '.join(shown)}: the limit is {advice}"


def uncertain(answers: Sequence[Answer]) -> Iterator[str]:
    """What is most uncertain of which cases, and what would narrow it; of a network its rate."""
    said: dict[str, list[Answer]] = {}
    for answer in answers:
        prediction = answer.prediction
        if prediction.dominant:
            said.setdefault(_most_uncertain(prediction), []).append(answer)
    for words, group in said.items():
        names = [label_words(answer) for answer in group]
        shown = names if len(names) <= MOST_NAMED else [*names[:2], f"{len(names) - 2} more"]
        is_named = _rate_range(group[0].prediction) is not None
        whose = "" if is_named or len(group) == len(answers) else f" of {'; '.join(shown)}"
        yield f"most uncertain{whose}: {words}"


def unfamiliar(answers: Sequence[Answer]) -> Iterator[str]:
    """Which cases are unlike most that was measured, and by how much their intervals are wider?"""
    said: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.prediction.widened is not None:
            said.setdefault(widened_words(answer.prediction), []).append(answer)
    for words, group in said.items():
        names = [label_words(answer) for answer in group]
        shown = names if len(names) <= MOST_NAMED else [*names[:2], f"{len(names) - 2} more"]
        yield words if len(group) == len(answers) else f"{'; '.join(shown)}: {words}"


def widened_words(prediction: Prediction) -> str:
    """What is uncertain, by how much more than usual, why, and what would end it; else nothing."""
    widened = prediction.widened
    if widened is None:
        return ""
    entry = next(each for each in known_widenings() if each.name == widened.kind)
    sources = f"{len(entry.fitted_on)} sources" if len(entry.fitted_on) > 1 else "one source"
    return (
        f"few have measured {entry.note}: {entry.rows} steps of {sources} make kernel times "
        f"{widened.width_ratio:.2g} times as uncertain as others; one measured step of yours "
        "removes that"
    )


def _rate_range(prediction: Prediction) -> tuple[float, float] | None:
    """Of its network, where that is what is uncertain."""
    if prediction.is_calibrated or prediction.dominant not in NETWORK_TERMS:
        return None
    return rate_range_gbyte_per_s(prediction.case)


def _most_uncertain(prediction: Prediction) -> str:
    fabric = prediction.case.fabric
    found = _rate_range(prediction)
    if found is None:
        narrowed = prediction.narrowed_by
        return prediction.dominant + (f"; {narrowed} would narrow it most" if narrowed else "")
    low, high = found
    name = fabric.name or fabric.transport
    return (
        f"the rate of {name}, {low:.2g} to {high:.2g} GB/s a node; nccl-tests' all_reduce on two "
        f"nodes would narrow it most: --network {name}=RATE"
    )


def _waits(answer: Answer) -> float:
    """Share of a step that waits for the network."""
    prediction = answer.prediction
    return prediction.parts.exposed_network_s / prediction.step_time_s.value


def _beside(group: Sequence[Answer]) -> str:
    shares = [_waits(answer) for answer in group]
    low, high = show_ratio(min(shares), 2), show_ratio(max(shares), 2)
    return f"; {low if low == high else f'{low} to {high}'} of a step waits for the network"


def knee_words(curve: BandwidthCurve) -> str:
    """`beyond 180 Gbit/s per node nothing is gained`."""
    limit = f"less than {show_ratio(GAIN_RATIO)} of a step"
    if curve.is_indifferent:
        return (
            f"the step time does not depend on the network: {show_rate(curve.rates_gbps[0])} per "
            f"node are enough ({limit} is gained beyond)"
        )
    if curve.knee_gbps is None:
        return (
            f"even beyond {show_rate(curve.rates_gbps[-1])} per node a faster network still gains"
        )
    return f"beyond {show_rate(curve.knee_gbps)} per node nothing is gained ({limit})"


def curve_titles(answers: Answers) -> list[str]:
    """Of each curve: what tells its training from the others, and its cluster."""
    cases = [answer.prediction.case for answer in answers.answers]
    words = told_beside_place(cases, [answer.label for answer in answers.answers])
    told_of = dict(zip(cases, words, strict=True))
    titles = []
    for curve in answers.curves:
        case = curve.case
        told = told_of[case]
        cluster = f"{case.strategy} on {case.nodes}x{case.gpus_per_node} {case.gpu}"
        titles.append(", ".join((case.model.name, *told, cluster)))
    return titles


def above_floor(answers: Answers, curve: BandwidthCurve) -> str:
    """`over a network without limit 1.18 s; pod 80×, roce-400g +41 %`: what is asked for."""
    wanted = on_any_network(curve.case)
    same = [
        each
        for each in (answer.prediction for answer in answers.answers)
        if on_any_network(each.case) == wanted
    ]
    shares = dict.fromkeys(
        f"{each.case.fabric.name} {_over(each.step_time_s.value / curve.floor_s)}" for each in same
    )
    return f"over a network without limit {show_time(curve.floor_s)}; {', '.join(shares)}"


def _over(ratio: float) -> str:
    """`+41 %`, or `12.4×` from threefold on."""
    return f"{ratio:.3g}×" if ratio >= 3 else f"+{show_ratio(max(0.0, ratio - 1), 2)}"


def exposed_words(answer: Answer) -> tuple[str, str]:
    """Time a step waits for communication, and its share of the step."""
    step_s = answer.prediction.step_time_s.value
    if answer.prediction.case.gpus == 1:
        return NOTHING, ""
    return show_time(answer.exposed_s), show_ratio(answer.exposed_s / step_s, 2)


def tokens_words(answer: Answer) -> str:
    return f"{show_count(answer.prediction.tokens_per_s)}"
