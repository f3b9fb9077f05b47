"""Are the numbers that the articles' examples tell of themselves what is computed or published?

Each example's sentences stand here with their numbers left out. A predictor that changes fails
here with the file, the line and the new number.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.predict.articles.test_inferred import (
    example,
    example_with,
    found,
    most_positions,
    networks,
)

from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.inferred import inferred_rate, predicted_ratio
from broadgauge.predict.articles.one_length import of_one_length
from broadgauge.predict.articles.recomputed.figures import FIGURES
from broadgauge.predict.articles.wanted_rates import WANTED
from broadgauge.predict.asking.workload_case import fabric_of, training_case
from broadgauge.predict.case import Fabric
from broadgauge.predict.predictor import predict
from broadgauge.specs.workloads.workload import TrainWorkload

ROOT = Path(__file__).parents[2]
NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
NEXT_WORD = r"\s+(?:#\s+)?"
"""It may stand in the comment's next line."""
OFFLOADED_BYTES = (16, 12)
"""Of each parameter in float32: with gradient and both moments; a copy without the gradient."""
Numbers = Callable[[], list[str]]


def trained(name: str) -> TrainWorkload:
    train = example(name).workloads[0]
    assert isinstance(train, TrainWorkload)
    return train


def published(system: str, network: str, nodes: int) -> float:
    """Samples/s."""
    (rate,) = (
        row.samples_per_s
        for row in articles().throughput_samples_per_s
        if (row.system, row.network, row.nodes) == (system, network, nodes)
    )
    return rate


def over_one_node(system: str, network: str, nodes: int = 2) -> float:
    return published(system, network, nodes) / published(system, "none", 1)


def sending_over_computing(network: str) -> float:
    """Of a sample on two nodes, which compute as one does."""
    return 2 / over_one_node("h100-cluster", network) - 1


def epoch_minutes(samples_per_s: float) -> float:
    return 9872 / samples_per_s / 60


@cache
def step_s(name: str, gpu: str, shape: tuple[int, int], network: str = "", *flags: str) -> float:
    """Predicted, samples of one length."""
    asked = example_with(name, *flags)
    (train, *_), (nodes, ranks) = asked.workloads, shape
    assert isinstance(train, TrainWorkload)
    (link,) = (each for each in asked.networks if each.name == network) if network else (None,)
    fabric = Fabric() if link is None else fabric_of(link)
    case = training_case(train, gpu=gpu, nodes=nodes, ranks_per_node=ranks, fabric=fabric)
    case = of_one_length(case, train)
    (answer,) = predict([case])
    return case.global_batch * case.seq_len / answer.tokens_per_s


def samples_per_s(name: str, gpu: str, shape: tuple[int, int]) -> float:
    packing = trained(name).packing
    assert packing is not None
    return packing.effective_batch_size / step_s(name, gpu, shape)


def h100_ratio(network: str, *flags: str) -> float:
    return predicted_ratio(example_with("granite-h100", *flags), "h100-sxm", network, 2)


def params(name: str) -> float:
    return float(trained(name).trained_parameters)


def longest_rows(max_batch_len: int) -> int:
    """Positions of the largest micro-batch on any of the L40S shapes."""
    asked = f"workloads.reference.packing.max_batch_len={max_batch_len}"
    (train, *_) = example_with("granite-l40s", asked).workloads
    assert isinstance(train, TrainWorkload)
    return max(most_positions(train, 2 * nodes) for nodes in (1, 2, 4, 8))


def l40s_batch() -> int:
    packing = trained("granite-l40s").packing
    assert packing is not None
    return packing.max_batch_len


def vnics_of_a_node() -> list[str]:
    """Gbit/s of all NICs, by what 4 and 8 nodes alone take."""
    (alone,) = (e.alone_gbps for e in found("granite-l40s") if e.wanted.network == "vnic")
    return [f"{nodes * rate:.0f}" for nodes, rate in zip((2, 4, 8), alone, strict=True) if rate][1:]


def gemma_s(network: str, *flags: str) -> float:
    return step_s("gemma-12b-fsdp", "h100-sxm", (2, 8), network, *flags)


def gemmas_steps() -> list[float]:
    """Seconds: Ethernet's, InfiniBand's."""
    steps = {row.network: row.seconds for row in articles().step_seconds}
    return [steps["eth10"], steps["infiniband"]]


def scattered_gbps(figure: str) -> str:
    return f"{FIGURES[figure](articles()).number:.0f}"


TOLD: dict[str, list[tuple[str, Numbers]]] = {
    "granite-h100": [
        (
            "CPU offload keeps {} GB a node in the host's memory, and {} GB more are a copy",
            lambda: [f"{each * params('granite-h100') / 1e9:.0f}" for each in OFFLOADED_BYTES],
        ),
        (
            "By the article's rates an epoch takes {} minutes over its pod network",
            lambda: [f"{epoch_minutes(published('h100-cluster', 'pod', 2)):.0f}"],
        ),
        (
            "is predicted to have {} times one node's throughput over 200 Gbit/s; the article had "
            "{} over the vNIC",
            lambda: [
                f"{h100_ratio('vnic-nics-1', 'networks.vnic.rate_gbps=200'):.2f}",
                f"{over_one_node('h100-cluster', 'vnic'):.2f}",
            ],
        ),
        (
            "explain SR-IOV: {} are predicted, and {} published",
            lambda: [
                f"{h100_ratio('sriov-nics-1'):.2f}",
                f"{over_one_node('h100-cluster', 'sriov'):.2f}",
            ],
        ),
        (
            "as fast as it is predicted, {} samples/s; the article's had {},",
            lambda: [
                f"{samples_per_s('granite-h100', 'h100-sxm', (1, 8)):.0f}",
                f"{published('h100-cluster', 'none', 1):g}",
            ],
        ),
    ],
    "granite-h100-cpu": [
        ("two cores: {} million", lambda: [f"{params('granite-h100-cpu') / 1e6:.1f}"]),
        (
            "({} and {}, say the article's throughputs",
            lambda: [
                f"{sending_over_computing('pod'):.0f}",
                f"{sending_over_computing('vnic'):.1f}",
            ],
        ),
    ],
    "granite-l40s": [
        (
            "CPU offload keeps {} GB a node",
            lambda: [f"{OFFLOADED_BYTES[0] * params('granite-l40s') / 1e9:.0f}"],
        ),
        (
            "the {} GB that a copy takes",
            lambda: [f"{OFFLOADED_BYTES[1] * params('granite-l40s') / 1e9:.0f}"],
        ),
        (
            "rows are padded, up to {} tokens a micro-batch, which don't: with {} they are about "
            "{} at most",
            lambda: [
                f"{round(longest_rows(35_000), -3):,}",
                f"{l40s_batch():,}",
                f"{round(longest_rows(l40s_batch()), -3):,}",
            ],
        ),
        (
            "By the article's rates an epoch takes {} minutes on one node",
            lambda: [f"{epoch_minutes(published('l40s-cluster', 'none', 1)):.0f}"],
        ),
        ("all of a node's carried is {} and {} Gbit/s", vnics_of_a_node),
        (
            "as fast as it is predicted, {} samples/s; the article's had {}.",
            lambda: [
                f"{samples_per_s('granite-l40s', 'l40s', (1, 2)):.1f}",
                f"{published('l40s-cluster', 'none', 1):g}",
            ],
        ),
        (
            "A step took {} minutes on one of the article's nodes",
            lambda: [f"{3840 / published('l40s-cluster', 'none', 1) / 60:.0f}"],
        ),
    ],
    "granite-l40s-cpu": [
        ("two cores: {} million", lambda: [f"{params('granite-l40s-cpu') / 1e6:.1f}"]),
        (
            "({} % and {} % efficiency there)",
            lambda: [f"{50 * over_one_node('l40s-cluster', n):.0f}" for n in ("pod", "vnic")],
        ),
    ],
    "gemma-12b-fsdp": [
        (
            "what leaves a node in it takes {} s",
            lambda: [f"{gemma_s('ethernet', 'networks.ethernet.rate_gbps=10'):.1f}"],
        ),
        ("has the rate that {} s take", lambda: [f"{gemmas_steps()[0]:g}"]),
        ("({} Gbit/s of gradients)", lambda: [scattered_gbps("gemma-eth-rate")]),
        (
            "a step is predicted to take {} s, and {} are published",
            lambda: [f"{gemma_s('infiniband'):.1f}", f"{gemmas_steps()[1]:g}"],
        ),
        ("of 21 ms carried {} Gbit/s a node", lambda: [scattered_gbps("gemma-ib-rate")]),
        (
            "So the ratio is {} here, where the article has {}.",
            lambda: [
                f"{round(gemma_s('ethernet') / gemma_s('infiniband'), -1):.0f}",
                f"{gemmas_steps()[0] / gemmas_steps()[1]:.0f}",
            ],
        ),
    ],
    "gemma-12b-fsdp-cpu": [
        ("with {} million", lambda: [f"{params('gemma-12b-fsdp-cpu') / 1e6:.1f}"]),
    ],
}


def places_of(sentence: str, text: str) -> Iterator[tuple[int, str]]:
    """The line of each number, and the number."""
    words = (re.escape(word).replace(r"\{\}", NUMBER) for word in sentence.split())
    match = re.search(NEXT_WORD.join(words), text)
    assert match, f"is no longer told: {sentence}"
    for group, number in enumerate(match.groups(), 1):
        yield text.count("\n", 0, match.start(group)) + 1, number


@pytest.mark.parametrize("name", TOLD)
def test_an_examples_numbers_are_those_that_are_computed(name: str) -> None:
    path = Path("examples") / f"{name}.yaml"
    text = (ROOT / path).read_text(encoding="utf-8")
    wrong = [
        f"{path}:{line}: {number} is told, {computed} is computed: {sentence}"
        for sentence, numbers in TOLD[name]
        for (line, number), computed in zip(places_of(sentence, text), numbers(), strict=True)
        if number != computed
    ]
    assert not wrong, "\n".join(wrong)


def test_what_examples_say_of_rates_without_a_number_is_so() -> None:
    """The L40S pod network's rate is lower with 35,000 tokens, 100 Gbit/s a vNIC explain two nodes
    alone, and Gemma's step takes more than the Ethernet that is stated."""
    more = example_with("granite-l40s", "workloads.reference.packing.max_batch_len=35000")
    (pod,) = (each for each in found("granite-l40s") if each.wanted.network == "pod")
    assert inferred_rate(more, pod.wanted).rate_gbps < pod.rate_gbps
    stated = example_with("granite-l40s", "networks.vnic.rate_gbps=100")
    for nodes, is_explained in ((2, True), (4, False), (8, False)):
        ratio = predicted_ratio(stated, "l40s", "vnic", nodes)
        wanted = over_one_node("l40s-cluster", "vnic", nodes)
        assert (ratio == pytest.approx(wanted, rel=0.02)) == is_explained
    rate_gbps = networks("gemma-12b-fsdp")["ethernet"].rate_gbps
    assert rate_gbps is not None
    assert rate_gbps > 10


def texts_that_tell() -> Iterator[tuple[Path, int, str]]:
    """Lines of docs, rows of the articles and comments of examples."""
    catalog = ROOT / "src/broadgauge/catalog"
    for path in (ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("**/*.md"), *catalog.glob("*.yaml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield path.relative_to(ROOT), number, line
    for path in (ROOT / "examples").glob("*.yaml"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith("#"):
                yield path.relative_to(ROOT), number, line


def test_an_inferred_rate_is_told_by_its_example_alone() -> None:
    """`rate_gbps` and `rate_inferred_from` have it; repeated elsewhere it would grow old."""
    rates = {
        f"{each.rate_gbps:g}": name
        for name in WANTED
        for each in networks(name).values()
        if each.rate_inferred_from is not None
    }
    told = "|".join(map(re.escape, rates))
    pattern = re.compile(rf"(?<![\d.])({told})(?:(?:, | and | or )[\d.]+)* Gbit/s")
    again = [
        f"{path}:{line}: {match[1]} Gbit/s is inferred: name `{rates[match[1]]}` in its place"
        for path, line, text in texts_that_tell()
        if (match := pattern.search(text))
    ]
    assert not again, "\n".join(again)
