"""Proves specs/text/reading.py and yaml_source.py: places, values and hints of bad input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.yaml_source import MAX_DEPTH, MAX_VALUES, parse_yaml

GOOD = """\
name: quickstart
cluster:
  shapes: [1x1, 2x1]
networks:
  - {name: pod-like, rate_gbps: 200 Mbit/s}
  - name: vnic-like
    rate_gbps: 1
  - name: no
workloads:
  - kind: collectives
    sizes: {from_bytes: 1 KiB, to_bytes: 16 MiB, factor: 16}
  - kind: train
    steps: 8
"""

COMMAND = """\
name: own
platform: local
cluster: {shapes: [1x1]}
workloads:
  - kind: command
    command: [train.py]
    metrics:
      - {name: step_s, regex: "took ([0-9.]+)"}
"""

UNCOMPILED = """\
compile: true
    activation_checkpointing: full
    lora: {dropout_ratio: 0.1}
    data: {samples: 9, mean_length: 9}
    packing: {max_batch_len: 99, effective_batch_size: 9}"""

BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)
)


def test_a_good_file_is_read_with_units_and_words() -> None:
    experiment = read_experiment(GOOD, "e.yaml")
    assert [network.name for network in experiment.networks] == ["pod-like", "vnic-like", "no"]
    assert experiment.networks[0].rate_gbps == pytest.approx(0.2)
    assert experiment.networks[2].rate_gbps is None
    collectives = experiment.workloads[0]
    assert collectives.kind == "collectives"
    assert collectives.sizes_bytes() == (2**10, 2**14, 2**18, 2**22)


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ("rate_gbps: 200", "rate_gps: 200", "e.yaml:5:22", "did you mean `rate_gbps`?"),
        ("200 Mbit/s", "200 MB", "e.yaml:5:22", "`MB` is no unit of a rate"),
        ("200 Mbit/s", "'200'", "e.yaml:5:22", "needs a unit"),
        ("200 Mbit/s", "-1", "e.yaml:5:22", "takes a number of 0.001 or more, not `-1`"),
        ("200 Mbit/s", ".nan", "e.yaml:5:33", "`.nan`"),
        ("200 Mbit/s", "1e400", "e.yaml:5:33", "too large"),
        ("kind: train", "kind: trian", "e.yaml:12:5", "did you mean `train`?"),
        ("kind: train", "knid: train", "e.yaml:12:5", "unknown key `knid`\n  hint: did you mean"),
        ("16 MiB", "16Mi", "e.yaml:11:32", "write it like `16 MiB`, not `16Mi`"),
        ("kind: train", "kind: storage", "e.yaml:13:5", "unknown key `steps`"),
        ("- kind: train\n    ", "- ", "e.yaml:12:5", "`kind` is missing"),
        ("2x1", "0x1", "e.yaml:3:17", "1 to 256 nodes, not `0x1`"),
        ("2x1", "1000000000x1", "e.yaml:3:17", "1 to 256 nodes, not `1000000000x1`"),
        ("2x1", "2x1000000000", "e.yaml:3:17", "1 to 64 ranks"),
        ("2x1", "two", "e.yaml:3:17", "nodes x ranks"),
        ("vnic-like", "pod-like", "e.yaml:6:5", "two networks are named `pod-like`"),
        ("kind: train", "kind: train\n    name: collectives", "e.yaml:13:5", "two workloads"),
        ("steps: 8", "networks: [pod-lik]", "e.yaml:13:16", "did you mean `pod-like`?"),
        ("steps: 8", "strategy: lora", "e.yaml:13:5", "goes with any strategy: `lora: {rank: 16}`"),
        ("steps: 8", "lora: {rank: 0}", "e.yaml:13:12", "`rank`"),
        ("steps: 8", "lora: {targets: [up, gate]}", "e.yaml:13:26", "no linear layer `gate`"),
        ("steps: 8", UNCOMPILED, "e.yaml:13:5", "LoRA's dropout of packed samples"),
        ("steps: 8", "lora: {targets: [up, qkv]}", "e.yaml:13:26", "`qkv`"),
        ("steps: 8", "lora: {targets: [up, up]}", "e.yaml:13:5", "`up` stands twice"),
        ("steps: 8", "epochs: 2", "e.yaml:13:5", "`epochs` of how many samples?"),
        ("steps: 8", "attention: flashy", "e.yaml:13:5", "did you mean `flash`?"),
        ("steps: 8", "cpu_offload: true", "e.yaml:13:5", "`strategy: fsdp` or `hsdp`"),
        ("steps: 8", "reduce_each_micro_batch: true", "e.yaml:13:5", "a strategy that shards"),
        ("steps: 8", "strategy: megatron", "e.yaml:13:5", "`strategy` can't be `megatron`"),
        ("steps: 8", "stepz: 8", "e.yaml:13:5", "did you mean `steps`?"),
        ("steps: 8", "steps: two", "e.yaml:13:5", "not `two`"),
        ("steps: 8", "steps: 8\n    model: {hidden: 30, heads: 4}", "e.yaml:14:5", "divide"),
        ("shapes", "shape", "e.yaml:3:3", "did you mean `shapes`?"),
        ("16 MiB", "1 B", "e.yaml:11:5", "`from_bytes` is larger than `to_bytes`"),
        ("factor: 16", "faktor: 16", "e.yaml:11:50", "did you mean `factor`?"),
        ("name: quickstart", "name: Quick start", "e.yaml:1:1", "`name`"),
        ("name: quickstart", "name: quickstart\nname: twice", "e.yaml:2:1", "first on line 1"),
        ("name: quickstart", "platform: slurm", "e.yaml:1:1", "planned and not there yet"),
        (
            "name: quickstart",
            "name: x\nplatform: local",
            "e.yaml:4:3",
            "local platform is one node",
        ),
        ("name: quickstart", "name: x\nstorage: []", "e.yaml:2:1", "did you mean `storages`?"),
        ("name: quickstart", "name: x\nstorages: [{name: disk}]", "e.yaml:2:12", "`path`"),
        ("name: quickstart", "name: x\nlaunches: 1e99", "e.yaml:2:1", "launches"),
        ("name: quickstart", "name: x\n<<: {}", "e.yaml:2:1", "merge keys"),
        ("name: quickstart", "name: !!python/name:os.system x", "e.yaml:1:7", "tagged"),
        ("  shapes: [", "\tshapes: [", "e.yaml:3:1", "indent with spaces"),
        ("[1x1, 2x1]", "[1x1", "e.yaml:4:9", "not YAML"),
        ("    sizes", "    ops: [allreduce]\n    sizes", "e.yaml:11:11", "`ops[0]` can't be"),
        ("    sizes", "    ops: [allreduce]\n    sizes", "e.yaml:11:11", "mean `all_reduce`?"),
        ("    sizes", "    ops: all_reduce\n    sizes", "e.yaml:11:5", "takes a list, not"),
        ("steps: 8", "model: 4", "e.yaml:13:5", "`model` takes a mapping of keys"),
        ("name: quickstart", "name: x\ncost: 2", "e.yaml:2:1", "`cost` takes a mapping of keys"),
        ("name: quickstart", "name: x\ncost: {tokens: lots}", "e.yaml:2:8", "`300B` or `1.5T`"),
        ("name: quickstart", "name: x\ncost: {usd: 2}", "e.yaml:2:8", "unknown key `usd`"),
        (
            "name: quickstart",
            "name: x\ncost: {usd_per_gpu_hour: -1}",
            "e.yaml:2:8",
            "takes a number of 0 or more, not `-1`",
        ),
        (
            "name: quickstart",
            "name: x\ncost: {usd_per_gpu_hour: 1, node: p5.48xlarge}",
            "e.yaml:2:1",
            "one price",
        ),
        ("name: quickstart", "name: My Experiment", "e.yaml:1:1", "lower-case letters, digits"),
        ("name: quickstart", "name: My Experiment", "e.yaml:1:1", "`my-experiment`"),
        ("name: quickstart", "name: x\nenvironment: {1A: b}", "e.yaml:2:15", "a variable's name"),
    ],
)
def test_a_mistake_is_named_with_place_value_and_hint(
    old: str, new: str, where: str, said: str
) -> None:
    assert old in GOOD
    with pytest.raises(ExperimentError) as caught:
        read_experiment(GOOD.replace(old, new, 1), "e.yaml")
    text = str(caught.value)
    assert text.startswith(where + ": "), text
    assert said in text


@pytest.mark.parametrize(
    ("platform", "where"), [("kubernets", "e.yaml:1:1"), ("[local, kubernets]", "e.yaml:1:19")]
)
def test_a_mistyped_platform_is_refused_though_a_flag_names_another(
    platform: str, where: str
) -> None:
    text = f"platform: {platform}\n{GOOD}"
    with pytest.raises(ExperimentError) as caught:
        read_experiment(text, "e.yaml", ["platform=emulated"])
    said = f"{where}: `platform` can't be `kubernets`\n  hint: did you mean `kubernetes`?"
    assert str(caught.value) == said
    assert read_experiment(f"platform: slurm\n{GOOD}", "e.yaml", ["platform=emulated"])


def test_more_nics_than_a_node_can_have_is_an_error_of_the_file() -> None:
    """Also where their number is that of the nodes."""
    mesh = "  - {name: mesh, nics_per_node: nodes}\nworkloads:"
    text = GOOD.replace("workloads:", mesh, 1)
    fits = read_experiment(text.replace("2x1", "16x1", 1), "e.yaml")
    assert fits.networks[-1].on_nodes(16).num_nics == 16
    with pytest.raises(ExperimentError) as caught:
        read_experiment(text.replace("2x1", "17x1", 1), "e.yaml")
    said = str(caught.value)
    assert said.startswith("e.yaml:9:18: ")
    assert "17 nodes would have 17 NICs each, at most 16" in said
    assert "hint: `nics_per_node: 1`" in said


@pytest.mark.parametrize(
    ("sizes", "where", "said"),
    [
        ("{from_bytes: 1 KiB, to_bytes: 1 MiB, faktor: 2}", "5:49", "did you mean `factor`?"),
        ("{from_byte: 1 KiB, to_bytes: 1 MiB}", "5:5", "`from_bytes` is missing"),
        ("{from_bytes: 1 KiB, to_bytes: 1 MX}", "5:32", "`MX` is no unit of a size"),
        ("{model: {layers: 2}, stratgy: ddp}", "5:33", "did you mean `strategy`?"),
        ("{model: {layer: 2}}", "5:21", "did you mean `layers`?"),
        ("{model: 4}", "5:13", "`model` takes a mapping"),
        ("{modell: {layers: 2}}", "5:5", "`model` is missing"),
        ("{modell: {layers: 2}, strategy: ddp}", "5:5", "`model` is missing"),
        ("{model: {}, strategy: hspd}", "5:24", "did you mean `hsdp`?"),
        ("{model: {hidden: 30, heads: 4}}", "5:13", "does not divide"),
        ("{model: {}, strategy: fsdp, bucket_cap_bytes: 1 MiB}", "5:40", "is DDP's"),
        ("[4, x]", "5:16", "`sizes[1]`: a size is written like"),
        ("[]", "5:5", "at least one size"),
        ("4", "5:5", "`sizes` takes a list"),
    ],
)
def test_each_form_of_sizes_is_told_by_its_own_keys(sizes: str, where: str, said: str) -> None:
    """And by nothing of the other forms."""
    text = f"name: x\nworkloads:\n  - kind: collectives\n    ops: [reduce]\n    sizes: {sizes}\n"
    with pytest.raises(ExperimentError) as caught:
        read_experiment(text, "e.yaml")
    told = str(caught.value)
    assert told.startswith(f"e.yaml:{where}: "), told
    assert said in told
    other_form = "from_bytes" if "model" in sizes else "`model`"
    assert other_form not in told


@pytest.mark.parametrize(
    ("extra", "where", "said"),
    [
        ("pairwise: true\n    ops: [reduce]", "5:5", "`pairwise` stands instead of `ops`"),
        ("pairwise: true\n    cuda_graphs: true", "5:5", "`cuda_graphs` is for `ops`"),
        ("pairwise: true\n    engine: nccl-tests", "5:5", "`engine: torch` has"),
        (
            "cuda_graphs: true\n    min_iterations: 257\n    max_iterations: 300",
            "5:5",
            "a CUDA graph holds at most 256 iterations",
        ),
    ],
)
def test_what_collectives_can_not_be_together(extra: str, where: str, said: str) -> None:
    text = f"name: x\nworkloads:\n  - kind: collectives\n    {extra}\n"
    with pytest.raises(ExperimentError) as caught:
        read_experiment(text, "e.yaml")
    assert str(caught.value).startswith(f"e.yaml:{where}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ("([0-9.]+)", "[0-9.]+", "e.yaml:8:24", "`regex`: the regular expression needs one group"),
        (
            "name: step_s",
            "name: throughput",
            "e.yaml:8:10",
            "with its unit, such as `_s`, `_per_s`",
        ),
        ("name: step_s", "name: throughput", "e.yaml:8:10", "not `throughput`"),
        ("name: step_s", "name: Step-time s", "e.yaml:8:10", "for example `step_time_s`"),
        ("regex:", "rgx:", "e.yaml:8:24", "did you mean `regex`?"),
        ("    command: [train.py]\n", "", "e.yaml:5:5", "`command` is missing"),
        ("[train.py]", "[]", "e.yaml:6:5", "takes a list of 1 or more, not an empty"),
        ("[train.py]", "[1]", "e.yaml:6:15", "`command[0]`"),
    ],
)
def test_the_kind_command_is_not_taken_for_its_key(
    old: str, new: str, where: str, said: str
) -> None:
    assert old in COMMAND
    with pytest.raises(ExperimentError) as caught:
        read_experiment(COMMAND.replace(old, new, 1), "e.yaml")
    text = str(caught.value)
    assert text.startswith(where + ": "), text
    assert said in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("[1, 2]", "a mapping"),
        ("just a word", "a mapping"),
        ("a: b: c", "needs quotes"),
        ("a: 1\n---\nb: 2\n", "one experiment a file"),
        (BOMB, "more than 50,000 values"),
        ("[" * 5000, "nested more than 50 deep"),
        ("a: " + "[" * 60 + "]" * 60, "nested more than 50 deep"),
        ("a: &a\n  - *a\n", "nested more than 50 deep"),
        ("a:\n- " + "[" * 1_000 + "]" * 1_000, "e.yaml:2:52: nested more than 50 deep"),
        ("a: " + "{a: " * 1_000 + "}" * 1_000, "e.yaml:1:204: nested more than 50 deep"),
        ("x" * (2**20 + 1), "at most 1,048,576"),
        ("\x00\x01\x02", "not YAML"),
    ],
)
def test_texts_that_are_no_experiment(text: str, said: str) -> None:
    with pytest.raises(ExperimentError, match=said):
        read_experiment(text, "e.yaml")


def test_two_missing_keys_are_both_named() -> None:
    with pytest.raises(ExperimentError) as caught:
        read_experiment("launches: 1", "e.yaml")
    assert "`name` is missing" in str(caught.value)
    assert "`workloads` is missing" in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_refused_in_words(text: str) -> None:
    with pytest.raises(ExperimentError, match=r"^e\.yaml"):
        read_experiment(text, "e.yaml")


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("launches=3", lambda e: e.launches == 3),
        ("workloads.train.steps=6", lambda e: e.workloads[1].steps == 6),
        ("workloads.1.model.layers=2", lambda e: e.workloads[1].model.layers == 2),
        ("networks.pod-like.rate_gbps=50 Mbit/s", lambda e: e.networks[0].rate_gbps == 0.05),
        ("cluster.shapes=[2x1]", lambda e: e.cluster.shapes == ("2x1",)),
        ("environment.NCCL_DEBUG=INFO", lambda e: e.environment == {"NCCL_DEBUG": "INFO"}),
    ],
)
def test_set_changes_one_part(override: str, read: object) -> None:
    experiment = read_experiment(GOOD, "e.yaml", [override])
    assert callable(read)
    assert read(experiment)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("launches", "takes key=value"),
        ("launches=", "launches"),
        ("launches=none", "not `none`"),
        ("cluster.shapes=[2x1, two]", "nodes x ranks"),
        ("workloads.trian.steps=1", "did you mean `train`?"),
        ("foo.bar=1", "unknown key `foo`"),
        ("name.x=1", "--set name.x=1"),
    ],
)
def test_a_wrong_override_is_named_as_typed(override: str, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_experiment(GOOD, "e.yaml", [override])
    assert f"--set {override}" in str(caught.value)
    assert said in str(caught.value)


def test_scalars_follow_yaml_1_2() -> None:
    data = parse_yaml("[50e9, no, yes, 0x10, 1_000, 1.5, '7', null, ~, true, 1:30]", "x").data
    assert data == [50e9, "no", "yes", "0x10", "1_000", 1.5, "7", None, None, True, "1:30"]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a: " + "[" * 300 + "]" * 300, 3 + MAX_DEPTH + 1),
        (f"a: [{'1, ' * MAX_VALUES}]", 5 + 3 * (MAX_VALUES - 2)),
    ],
)
def test_what_is_too_large_is_read_no_further(text: str, column: int) -> None:
    """Composing takes a time that grows with the square of the depth."""
    with pytest.raises(ExperimentError, match=rf"e\.yaml:1:{column}: (nested )?more than"):
        parse_yaml(text, "e.yaml")


def test_as_many_values_as_are_read_are_read() -> None:
    """The count while composing is that of the values, keys apart."""
    text = "".join(f"k{i}: [1, {{a: 2}}]\n" for i in range(MAX_VALUES // 4 - 1))
    assert len(parse_yaml(text, "e.yaml").data) == MAX_VALUES // 4 - 1


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("experts: 2", "e.yaml:14:26: a mixture of experts needs `experts_per_token`"),
        (
            "experts: 2, experts_per_token: 1",
            "e.yaml:14:38: a router whose token passes one expert is not trained",
        ),
        ("experts_per_token: 2", "e.yaml:14:26: 2 experts a token, of 1"),
        ("experts: 2, experts_per_token: 3", "e.yaml:14:38: 3 experts a token, of 2"),
        (
            "experts: 2, experts_per_token: 2, ffn_hidden: 20",
            "e.yaml:14:60: `ffn_hidden` of a mixture of experts is a",
        ),
        (
            "experts: 2, experts_per_token: 2, ffn_hidden: 16}\n    compile: true  #",
            "e.yaml:15:5: torch compiles a mixture",
        ),
        (
            "experts: 2, experts_per_token: 2}\n    lora: {targets: [up]}  #",
            "e.yaml:15:22: adapters are beside attention",
        ),
    ],
)
def test_a_mixture_of_experts_that_can_not_be_is_refused(model, told):
    text = GOOD.replace("steps: 8", f"steps: 8\n    model: {{kind: llama, {model}}}")
    with pytest.raises(ExperimentError) as failed:
        read_experiment(text, "e.yaml")
    assert told in str(failed.value)
