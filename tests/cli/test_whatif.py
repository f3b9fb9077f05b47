"""Proves cli/whatif.py: what is asked by flags, what is printed, and what is refused."""

import json
from pathlib import Path

import pytest
from tests.predict.making_systems import system

from broadgauge.cli.main import main
from broadgauge.predict.system.file import dump_system

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def golden(repository: Path) -> str:
    """A train of 57.5 ms on `slow`, 50.3 ms without communication."""
    return str(repository / "tests/results/golden/schema-1")


def ask(golden: str, capsys: Captured, *flags: str) -> str:
    assert main(["whatif", golden, *flags]) == 0
    return capsys.readouterr().out


def test_what_was_measured_and_what_was_modelled_is_said(golden: str, capsys: Captured) -> None:
    text = ask(golden, capsys, "--network", "roce-400g,10 Gbit/s")
    assert "roce-400g" in text
    assert "10 Gbit/s" in text
    measured, _, modelled = text.partition("Modelled")
    assert "the step, 57.5 ms (2 launches)" in measured
    assert "communication off, 50.3 ms" in measured
    assert "nominal figures of the catalog" in modelled
    assert "reference: predicted" in modelled


def test_which_training_is_asked_is_said_where_there_are_several(
    golden: str, capsys: Captured
) -> None:
    words = "note: of 4 trainings this is train 2x1 slow, on its slowest network; --case takes"
    assert words in " ".join(ask(golden, capsys).split())
    assert "trainings" not in ask(golden, capsys, "--case", "network=tuned")


def test_json_says_the_same(golden: str, capsys: Captured) -> None:
    found = json.loads(ask(golden, capsys, "--json", "--nodes", "2,4"))
    same, more = found["answers"]
    assert same["step_time_s"] == pytest.approx(found["measured"]["step_time_s"], rel=1e-6)
    assert more["tokens_per_s"] > same["tokens_per_s"]
    assert same["low_s"] <= same["step_time_s"] <= same["high_s"]
    assert found["calibration"]["network_basis"] == "own"


def test_as_many_nodes_as_there_were_is_the_measured_step(
    golden: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    case = ("--case", "network=slow")
    plain = ask(golden, capsys, *case)
    asked = ask(golden, capsys, *case, "--nodes", "2", "--network", "slow")
    assert "slow, 2 nodes, as measured" in asked
    assert "the networks asked for" not in asked
    (one,) = json.loads(ask(golden, capsys, *case, "--json"))["answers"]
    (other,) = json.loads(ask(golden, capsys, *case, "--json", "--nodes", "2"))["answers"]
    assert "nothing, as measured" in plain
    assert other == one | {"label": "2 nodes"}


def test_every_combination_is_asked_once(golden: str, capsys: Captured) -> None:
    flags = ["--strategy", "ddp,fsdp,ddp", "--accumulation", "1,4", "--gradient-dtype", "bfloat16"]
    found = json.loads(ask(golden, capsys, "--json", *flags))
    labels = [each["label"] for each in found["answers"]]
    assert labels == [
        f"{strategy}, {number} micro-batches, gradients in bfloat16"
        for strategy in ("ddp", "fsdp")
        for number in (1, 4)
    ]


def test_what_a_file_of_the_users_replaces_is_said(
    golden: str, capsys: Captured, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("networks: [{name: roce-400g, transport: roce, nominal_gbps: 390}]")
    flags = ("--network", "roce-400g", "--catalog", str(mine))
    text = ask(golden, capsys, *flags)
    assert f"{mine}replacesnetworkroce-400gofthecatalog" in "".join(text.split())
    (replaced,) = json.loads(ask(golden, capsys, *flags, "--json"))["replaced"]
    assert (replaced["kind"], replaced["name"]) == ("networks", "roce-400g")


def test_a_storage_adds_to_the_measured_step_what_is_modelled(
    golden: str, capsys: Captured
) -> None:
    asked = ("--storage", "nvme-pcie4,aws-ebs-gp3", "--checkpoint-every", "1")
    text = " ".join(ask(golden, capsys, *asked).split())
    assert "no measured step waited" in text
    assert "Waiting for storage" in text
    found = json.loads(ask(golden, capsys, *asked, "--json"))
    fast, slow = found["answers"]
    for each in (fast, slow):
        assert each["step_time_s"] == pytest.approx(
            found["measured"]["step_time_s"] + each["storage"]["save_stall_s"], rel=1e-6
        )
        assert each["storage_s"] == pytest.approx(each["storage"]["save_stall_s"])
        assert each["low_s"] < each["step_time_s"] < each["high_s"]
        assert not each["is_measured"]
    assert slow["speedup_ratio"] < fast["speedup_ratio"] < 1


def test_a_storage_that_takes_longest_is_the_bottleneck(golden: str, capsys: Captured) -> None:
    asked = ("--storage", "sata-ssd", "--sample-bytes", "1GB", "--json")
    (answer,) = json.loads(ask(golden, capsys, *asked))["answers"]
    assert answer["bottleneck"] == "storage"
    assert answer["storage"]["data_stall_s"] > answer["compute_s"]
    (plain,) = json.loads(ask(golden, capsys, "--json"))["answers"]
    assert (plain["bottleneck"], plain["storage"], plain["storage_s"]) == ("compute", None, 0)


def test_networks_and_storages_are_combined(golden: str, capsys: Captured) -> None:
    asked = ("--storage", "nvme-pcie4,sata-ssd", "--network", "10 Gbit/s,25 Gbit/s", "--json")
    labels = [each["label"] for each in json.loads(ask(golden, capsys, *asked))["answers"]]
    assert labels == [
        f"{network}, {storage}"
        for network in ("10 Gbit/s", "25 Gbit/s")
        for storage in ("nvme-pcie4", "sata-ssd")
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--network", "roce-400"), "did you mean `roce-400g`?"),
        (("--network", "referenc"), "did you mean `reference`?"),
        (("--network", "0 Gbit/s"), "zero bandwidth"),
        (("--nodes", "two"), "whole numbers from 1 to 16,384, not `two`"),
        (("--nodes", "2,,4"), "an empty item"),
        (("--strategy", "megatron"), "known: ddp, fsdp, hsdp"),
        (("--gradient-dtype", "bf16"), "did you mean `bfloat16`?"),
        (("--storage", "floppy"), "no storage `floppy`"),
        (("--checkpoint-every", "10"), "--checkpoint-every is of a storage"),
        (("--case", "network=fast"), "no training has network `fast`"),
        (("--case", "shape=1x1", "--network", "roce-400g"), "is one rank, which sends nothing"),
        (("--model", "llama3-8b"), "trained 1 layers of 32, and llama3-8b has 32 of 4096"),
        (("--model", "lama3-8b"), "did you mean"),
        (("--system", "nothing.yaml"), "nothing.yaml: no such file"),
    ],
)
def test_bad_input_is_one_message_with_a_hint(
    golden: str, capsys: Captured, flags: tuple[str, ...], message: str
) -> None:
    assert main(["whatif", golden, *flags]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert message in written.err
    assert len(written.err.strip().splitlines()) <= 2


def test_a_system_file_of_another_machine_is_refused(
    golden: str, capsys: Captured, tmp_path: Path
) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(system()))
    assert main(["whatif", golden, "--system", str(path)]) == 2
    assert "the system file is of toy (Toy CPU), and the run computed on" in capsys.readouterr().err


def test_what_is_no_run_is_refused(capsys: Captured, tmp_path: Path) -> None:
    assert main(["whatif", str(tmp_path)]) == 5
    assert "is no run folder" in capsys.readouterr().err
