"""Proves specs/text/axes.py and axis_names.py: what lists expand to, its names and places."""

import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.specs.base import NAME_PATTERN
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text import axes
from broadgauge.specs.text.axis_names import expanded_names
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment
from broadgauge.specs.text.yaml_source import parse_yaml

TEXT = """\
name: axes
cluster: {shapes: [2x1]}
networks:
  - name: eth
    rate_gbps: [1 Gbit/s, 10 Gbit/s]
    nics_per_node: [1, nodes]
  - {name: plain, mtu_bytes: 9000}
workloads:
  - kind: train
    networks: [eth]
    accumulation: [1, 8]
    model: {hidden: [256, 512], layers: 2}
  - kind: collectives
    ops: [all_reduce, all_gather]
    sizes: [1 KiB, 1 MiB]
    environment: {NCCL_ALGO: [Ring, Tree], NCCL_PROTO: Simple}
skip_if:
  - {network: eth, workload: [train, collectives]}
hypotheses:
  - name: h
    statement: x
    cases: {network: eth}
    over: {network: plain, workload: train}
    at_most: 1
"""


def read(text: str = TEXT) -> Experiment:
    return read_experiment(text, "e.yaml")


def names(items: tuple[Any, ...]) -> list[str]:
    return [item.name for item in items]


def test_each_list_expands_its_entry_in_the_files_order() -> None:
    experiment = read()
    assert [(n.name, n.rate_gbps, n.nics_per_node) for n in experiment.networks] == [
        ("eth-rate-1gbit-nics-1", 1.0, 1),
        ("eth-rate-1gbit-nics-nodes", 1.0, "nodes"),
        ("eth-rate-10gbit-nics-1", 10.0, 1),
        ("eth-rate-10gbit-nics-nodes", 10.0, "nodes"),
        ("plain", None, 1),
    ]
    trains = [w for w in experiment.workloads if w.kind == "train"]
    assert [(w.name, w.accumulation, w.model.hidden, w.model.layers) for w in trains] == [
        ("train-accumulation-1-hidden-256", 1, 256, 2),
        ("train-accumulation-1-hidden-512", 1, 512, 2),
        ("train-accumulation-8-hidden-256", 8, 256, 2),
        ("train-accumulation-8-hidden-512", 8, 512, 2),
    ]


def test_lists_by_nature_stay_lists_and_variables_are_axes() -> None:
    collectives = [w for w in read().workloads if w.kind == "collectives"]
    assert names(tuple(collectives)) == ["collectives-algo-ring", "collectives-algo-tree"]
    assert all(w.ops == ("all_reduce", "all_gather") for w in collectives)
    assert all(w.sizes == (2**10, 2**20) for w in collectives)
    assert [w.environment for w in collectives] == [
        {"NCCL_ALGO": algo, "NCCL_PROTO": "Simple"} for algo in ("Ring", "Tree")
    ]


def test_an_entrys_own_name_means_all_that_came_of_it() -> None:
    experiment = read()
    eths = tuple(name for name in names(experiment.networks) if name != "plain")
    assert experiment.workloads[0].networks == eths
    assert experiment.skip_if[0].network == ("eth-*",)
    assert experiment.skip_if[0].workload == ("train-*", "collectives-*") or (
        experiment.skip_if[0].workload == tuple(names(experiment.workloads))
    )
    assert experiment.hypotheses[0].cases.network == ("eth-*",)
    assert experiment.hypotheses[0].over is not None
    assert experiment.hypotheses[0].over.network == ("plain",)


def test_a_pattern_never_means_an_entry_that_is_another() -> None:
    experiment = read(TEXT.replace("name: plain", "name: eth-fast").replace("plain", "eth-fast"))
    expected = tuple(name for name in names(experiment.networks) if name != "eth-fast")
    assert experiment.hypotheses[0].cases.network == expected


def test_one_of_the_expanded_can_be_named_alone() -> None:
    name = "eth-rate-10gbit-nics-1"
    experiment = read(TEXT.replace("networks: [eth]", f"networks: [plain, {name}]"))
    assert experiment.workloads[0].networks == ("plain", name)


def test_a_list_of_one_is_an_axis_of_one() -> None:
    experiment = read(TEXT.replace("[1 Gbit/s, 10 Gbit/s]", "[1 Gbit/s]"))
    assert names(experiment.networks)[0] == "eth-rate-1gbit-nics-1"


def test_what_is_expanded_is_read_back_as_it_is() -> None:
    experiment = read()
    assert read_experiment(dump_experiment(experiment), "x.yaml") == experiment


def test_a_flag_sets_and_reaches_axes_by_the_entrys_own_name() -> None:
    flags = ["networks.eth.rate_gbps=[2 Gbit/s, 3 Gbit/s, 4 Gbit/s]", "networks.eth.mtu_bytes=9000"]
    experiment = read_experiment(TEXT, "e.yaml", flags)
    assert [n.rate_gbps for n in experiment.networks[:6:2]] == [2.0, 3.0, 4.0]
    assert {n.mtu_bytes for n in experiment.networks} == {9000}


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ("10 Gbit/s]", "10 GB]", "e.yaml:5:27", "`GB` is no unit of a rate"),
        ("10 Gbit/s]", "-1]", "e.yaml:5:27", "not `-1`"),
        ("1, nodes]", "1, 1]", "e.yaml:6:24", "`1` stands twice in `nics_per_node`"),
        ("[1, nodes]", "[]", "e.yaml:6:5", "the list is empty"),
        ("[256, 512]", "[256, 511]", "e.yaml:12:5", "511 does not divide by heads 4"),
        ("[256, 512]", "[256, x]", "e.yaml:12:27", "not `x`"),
        ("[1, 8]", "[[1], 8]", "e.yaml:11:20", "`accumulation` takes one value"),
        ("hidden: [", "hiden: [", "e.yaml:12:13", "did you mean `hidden`?"),
        ("[Ring, Tree]", '[Ring, "\\0"]', "e.yaml:16:37", "NUL"),
        ("[eth]", "[eht]", "e.yaml:10:16", "no network is named `eht`"),
        ("name: plain", "name: eth", "e.yaml:7:6", "two networks are named `eth`"),
        ("name: plain", "name: eth-rate-1gbit-nics-1", "e.yaml:7:6", "two networks are named"),
        ("name: eth", "name: [eth, e]", "e.yaml:4:5", "write an entry for each"),
        ("name: eth", "name: Eth 1", "e.yaml:4:5", "not `Eth 1`"),
        ("name: axes", "name: x\nlaunches: [1, 2]", "e.yaml:2:1", "`launches` takes one value"),
        ("name: axes", "name: x\nlaunches: [1, 2]", "e.yaml:2:1", "only in an entry of `networks`"),
        ("name: axes", "name: x\nlimits: {warm_up_s: [1]}", "e.yaml:2:10", "takes one value"),
        ("name: axes", "name: x\nenvironment: {A: [a]}", "e.yaml:2:15", "`environment` of a net"),
        ("kind: train", "kind: [train]", "e.yaml:9:5", "`kind` takes one value, not a list"),
    ],
)
def test_a_wrong_value_is_named_where_it_stands(old: str, new: str, where: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(ExperimentError) as caught:
        read(TEXT.replace(old, new, 1))
    text = str(caught.value)
    assert text.startswith(where + ": "), text
    assert said in text


def test_an_axis_that_a_flag_has_set_is_blamed_on_the_flag() -> None:
    flag = "workloads.train.accumulation=[1, 0]"
    with pytest.raises(ExperimentError, match=re.escape(f"--set {flag}: ")):
        read_experiment(TEXT, "e.yaml", [flag])


def test_too_many_entries_are_refused_before_they_are_made() -> None:
    many = str(list(range(1, 4001)))
    text = TEXT.replace("[256, 512]", many).replace("[1, 8]", many)
    with pytest.raises(ExperimentError, match=r"16,000,000 entries \(accumulation 4000 x hidden"):
        read(text)


def test_the_bound_is_of_all_entries_together() -> None:
    sizes = f"{{hidden: {[8 * i for i in range(1, 32)]}, heads: 1}}"
    assert len(read(TEXT.replace("{hidden: [256, 512], layers: 2}", sizes)).workloads) == 64
    with pytest.raises(ExperimentError, match="64 at most"):
        read(TEXT.replace("{hidden: [256, 512], layers: 2}", sizes.replace("[", "[1024, ")))


KEYS = ("rate_gbps", "mtu_bytes", "nics_per_node", "delay_s", "nccl_seen_gbps", "overlay")
VALUES = st.one_of(
    st.integers(-9, 9999), st.floats(0.001, 1e4), st.none(), st.booleans(), st.text(max_size=70)
)


@given(
    base=st.from_regex(NAME_PATTERN, fullmatch=True).filter(lambda name: not name.endswith("\n")),
    axes=st.dictionaries(
        st.sampled_from(KEYS), st.lists(VALUES, min_size=1, max_size=4, unique_by=repr), min_size=1,
        max_size=4,
    ),
)  # fmt: skip
def test_names_are_unique_and_names(base: str, axes: dict[str, list[Any]]) -> None:
    made = expanded_names(base, [((key,), values) for key, values in axes.items()])
    assert len(made) == len(set(made)) == len(list(itertools.product(*axes.values())))
    assert all(re.fullmatch(NAME_PATTERN, name) for name in made)
    assert all(name.startswith(base[:60]) for name in made)


@pytest.mark.parametrize(
    ("path", "values", "expected"),
    [
        (("rate_gbps",), ["1.5 Gbit/s", "200 Mbit/s"], ["rate-1.5gbit", "rate-200mbit"]),
        (("rate_gbps",), [0.2, 25, None], ["rate-0.2", "rate-25", "rate-none"]),
        (("nccl_seen_gbps",), ["default", "25 Gbit/s"], ["nccl-seen-default", "nccl-seen-25gbit"]),
        (("environment", "NCCL_PROTO"), ["LL128", "LL"], ["proto-ll128", "proto-ll"]),
        (("environment", "OMP_NUM_THREADS"), ["1"], ["omp-num-threads-1"]),
        (("cuda_graphs",), [False, True], ["cuda-graphs-false", "cuda-graphs-true"]),
        (("model",), [{"hidden": 8}, {"hidden": 16}], ["model-1", "model-2"]),
        (("text",), ["/data/A.txt", "/data/a.txt"], ["text-1", "text-2"]),
        (("delay_s",), ["10 ms", "-"], ["delay-1", "delay-2"]),
    ],
)
def test_the_rule_for_names(path: tuple[str, ...], values: list[Any], expected: list[str]) -> None:
    assert expanded_names("x", [(path, values)]) == [f"x-{end}" for end in expected]


def test_keys_that_read_the_same_are_written_out() -> None:
    axes = [(("sizes", "from_bytes"), [1]), (("from_bytes",), [2])]
    assert expanded_names("x", axes) == ["x-sizes-from-bytes-1-from-bytes-2"]


def test_names_that_would_be_too_long_are_numbered() -> None:
    axes = [(("text",), ["a" * 40, "b" * 40])]
    assert expanded_names("x" * 30, axes) == ["x" * 30 + "-1", "x" * 30 + "-2"]
    assert expanded_names("x" * 63, axes) == ["x" * 61 + "-1", "x" * 61 + "-2"]


@settings(deadline=None, max_examples=50)
@given(
    rates=st.lists(st.sampled_from((0.1, 1, 10, 25)), min_size=1, max_size=3, unique=True),
    mtus=st.lists(st.sampled_from((1500, 4000, 9000)), min_size=1, max_size=3, unique=True),
    batches=st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True),
)
def test_expansion_is_writing_every_entry_by_hand(
    rates: list[float], mtus: list[int], batches: list[int]
) -> None:
    """The plain reference: nested loops over the values."""
    text = (
        "name: x\ncluster: {shapes: [2x1]}\n"
        f"networks: [{{name: n, mtu_bytes: {mtus}, rate_gbps: {rates}}}]\n"
        f"workloads: [{{kind: train, batch_per_rank: {batches}}}]\n"
    )
    experiment = read(text)
    assert [(n.mtu_bytes, n.rate_gbps) for n in experiment.networks] == [
        (mtu, rate) for mtu in mtus for rate in rates
    ]
    assert [w.batch_per_rank for w in experiment.workloads] == batches


def test_too_many_are_counted_before_they_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing takes a time that grows with the square of the values."""
    monkeypatch.delattr(axes, "_is_same")
    text = f"workloads: [{{kind: train, steps: {list(range(4_000))}, seed: [1, 2]}}]"
    with pytest.raises(ExperimentError, match=r"expands to [48],000 entries"):
        axes.expand_axes(parse_yaml(text, "e.yaml"))
