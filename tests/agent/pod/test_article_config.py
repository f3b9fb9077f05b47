"""Proves agent/pod/article_config.py: the same words as bash, jq and sed make of the file."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.hardware.machines import switch_path
from tests.agent.pod import pods

from broadgauge.agent.pod.article_config import ArticleConfigError, read_config
from broadgauge.agent.pod.facts import read_pod_facts
from broadgauge.agent.pod.resolve import resolve
from broadgauge.messages.pod_network import PodNetwork

PUBLISHED = """\
{
  "nnodes": 8,
  "nproc_per_node": 2,
  "module": "instructlab.training.main_ds",
  "model_name_or_path": "/mnt/storage/model/granite-3.1-8b-starter-v2",
  "data_path": "/mnt/storage/dataset/data.jsonl",
  "output_dir": "/mnt/output/model",
  "num_epochs": 1,
  "effective_batch_size": 3840,
  "learning_rate": 0.0001,
  "num_warmup_steps": 800,
  "save_samples": 0,
  "log_level": "INFO",
  "max_batch_len": 35000,
  "seed": 42,
  "distributed_training_framework": "fsdp",
  "cpu_offload_optimizer": true,
  "cpu_offload_params": true,
  "fsdp_sharding_strategy": "HYBRID_SHARD"
}
"""
"""The article's example, "Hyperparameter configuration (config.json)"; its English text begins with
`max_batch_len`."""
EXPECTED = (
    "--nnodes 8 --nproc_per_node 2 --module instructlab.training.main_ds "
    "--model_name_or_path /mnt/storage/model/granite-3.1-8b-starter-v2 "
    "--data_path /mnt/storage/dataset/data.jsonl --output_dir /mnt/output/model --num_epochs 1 "
    "--effective_batch_size 3840 --learning_rate 0.0001 --num_warmup_steps 800 --save_samples 0 "
    "--log_level INFO --max_batch_len 35000 --seed 42 --distributed_training_framework fsdp "
    "--cpu_offload_optimizer --cpu_offload_params --fsdp_sharding_strategy HYBRID_SHARD"
)
IN_SHELL = r"""
set -f
for word in --node_rank "${RANK}" --rdzv_endpoint "${MASTER_ADDR}:${MASTER_PORT}" \
  $(jq -r '. | to_entries | .[] | ("--" + .key + " " + (.value | tostring))' | sed "s/ true//")
do printf '%s\0' "$word"; done
"""
"""The article's command line, each word ended by a zero byte; `set -f` keeps files out of it."""
ENVIRON = {"RANK": "3", "MASTER_ADDR": "ilab-master-0", "MASTER_PORT": "23456"}
needs_jq = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("bash")), reason="no jq or no bash"
)


def by_shell(text: str) -> list[str]:
    ended = subprocess.run(
        ["bash", "-c", IN_SHELL],
        input=text.encode(),
        capture_output=True,
        check=True,
        env={**ENVIRON, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        timeout=30,
    )
    return ended.stdout.decode().split("\0")[:-1]


def test_the_published_file() -> None:
    config = read_config(PUBLISHED)
    assert list(config.arguments) == EXPECTED.split()
    assert (config.num_nodes, config.ranks_per_node) == (8, 2)
    assert config.command is not None
    assert config.command[:3] == (
        "-m",
        "instructlab.training.main_ds",
        "--model_name_or_path",
    )
    assert list(config.command[2:]) == EXPECTED.split()[6:]
    assert list(config.script_arguments) == EXPECTED.split()[6:]
    assert config.paths == (
        "/mnt/storage/model/granite-3.1-8b-starter-v2",
        "/mnt/storage/dataset/data.jsonl",
        "/mnt/output/model",
    )
    assert config.variables == {}
    assert config.launch(ENVIRON) == (
        *("torchrun", "--node_rank", "3", "--rdzv_endpoint", "ilab-master-0:23456"),
        *EXPECTED.split(),
    )


@needs_jq
def test_the_shell_makes_the_same_of_the_published_file() -> None:
    assert ["torchrun", *by_shell(PUBLISHED)] == list(read_config(PUBLISHED).launch(ENVIRON))


def test_words() -> None:
    text = json.dumps(
        {
            "flag": True,
            "word": "true",
            "not": False,
            "none": None,
            "empty": "",
            "spaces": "a  b\tc",
            "within": "a true story",
            "lines": "one true\ntwo true true",
            "list": [1, 2.5, "x"],
            "object": {"z": 1, "a": True},
        }
    )
    assert list(read_config(text).arguments) == [
        *("--flag", "--word", "--not", "false", "--none", "null", "--empty"),
        *("--spaces", "a", "b", "c", "--within", "a", "story"),
        *("--lines", "one", "two", "true", "--list", '[1,2.5,"x"]'),
        *("--object", '{"z":1,"a":true}'),
    ]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("1.0", "1"),
        ("1e-4", "0.0001"),
        ("1e-5", "1e-05"),
        ("2.5e10", "25000000000"),
        ("1e15", "1000000000000000"),
        ("1e17", "1e+17"),
        ("-0.0", "-0"),
        ("-12.50", "-12.5"),
        ("123456789012345678", "123456789012345680"),
        ("1.5e-7", "1.5e-07"),
    ],
)
def test_numbers(number: str, shown: str) -> None:
    assert read_config(f'{{"n": {number}}}').arguments == ("--n", shown)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no JSON"),
        ("[1]", "holds no object"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": 1e999}', "a number is too large"),
        ('{"data": "/mnt/*.jsonl"}', "config.json, data: the shell would look for files"),
    ],
)
def test_what_the_script_would_not_take(text: str, says: str) -> None:
    with pytest.raises(ArticleConfigError, match=says):
        read_config(text)


def test_variables_are_no_arguments() -> None:
    config = read_config('{"nnodes": "auto", "NCCL_SOCKET_NTHREADS": 4, "seed": 1}')
    assert config.arguments == ("--nnodes", "auto", "--seed", "1")
    assert config.variables == {"NCCL_SOCKET_NTHREADS": "4"}
    assert config.num_nodes is None
    assert config.command is None
    with pytest.raises(ArticleConfigError, match="the launch has no RANK, MASTER_PORT"):
        config.launch({"MASTER_ADDR": "a"})


KEYS = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
TEXTS = st.text(alphabet="*abtrue \t\n/._-é{}\"'\\$`=", max_size=12)
NUMBERS = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=-10, max_value=10).map(lambda each: round(each, 6)),
)
PLAIN = st.one_of(st.booleans(), st.none(), TEXTS, NUMBERS)
VALUES = st.one_of(PLAIN, st.lists(PLAIN, max_size=3))
CONFIGS = st.dictionaries(KEYS, VALUES, max_size=8)


@needs_jq
@settings(max_examples=60, deadline=None)
@given(CONFIGS)
def test_the_shell_makes_the_same_of_any_file(config: dict[str, object]) -> None:
    text = json.dumps(config)
    try:
        ours = read_config(text).launch(ENVIRON)
    except ArticleConfigError:
        assert "*" in text
        return
    assert list(ours[1:]) == by_shell(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_config(text)
    except ArticleConfigError:
        return
    assert text.strip().startswith("{")


def test_variables_of_the_articles_script_and_ours(tmp_path: Path) -> None:
    """With `NCCL_SOCKET_IFNAME=net1,net2` and eight adapters mlx5_0 to mlx5_7 of which the last two
    are the pod's, its script sets, by the semantics of `seq` and of its loop:

    NCCL_IB_HCA=mlx5_7,mlx5_6 (the last as many as interfaces, by number: the same two here, and
    others where adapters are numbered otherwise), NCCL_IB_GID_INDEX=3 (the same where the table is
    the usual one), NCCL_IB_DISABLE=0 (NCCL's default; ours is NCCL_NET=IB, which fails instead of
    falling back), NCCL_TOPO_FILE=/mnt/storage/topo.xml (ours: the bus, or the VM's own file) and
    NCCL_DEBUG=info (ours is the platform's).
    """
    machine = pods.pod(tmp_path, gpus=2)
    for number in (1, 2):
        pods.add_vf(machine, number, f"10.{number}.0.5/24", hca=f"mlx5_{5 + number}")
    for index in range(6):
        device = machine.pci(switch_path(0x40 + 0x10 * index, 1), ("0x15b3", "0x1021"))
        machine.hca(f"mlx5_{index}", device)
    entries = (pods.entry(n, f"ns/subnet-rdma-port-0{n}") for n in (1, 2))
    network = PodNetwork(
        name="sriov-rdma",
        attachments=("ns/subnet-rdma-port-01", "ns/subnet-rdma-port-02"),
        num_nics=2,
        transport="roce",
    )
    facts = read_pod_facts(tmp_path, pods.status(*entries), environ={})
    resolved = resolve(network, facts)
    assert resolved.problems == ()
    ours = resolved.variables
    adapters = {name.partition(":")[0] for name in ours["NCCL_IB_HCA"].lstrip("=").split(",")}
    assert adapters == {"mlx5_7", "mlx5_6"}
    assert ours["NCCL_IB_GID_INDEX"] == "3"
    assert ours["NCCL_SOCKET_IFNAME"] == "=net1,net2"
    assert ours["NCCL_NET"] == "IB"
    assert {"NCCL_IB_DISABLE", "NCCL_TOPO_FILE", "NCCL_DEBUG"}.isdisjoint(ours)
