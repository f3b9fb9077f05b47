"""Proves scripts/aa_runs.py and scripts/before_after.py: what they count, and what they allow."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.engine.making import TRAIN
from tests.results.comparing.test_gate_runs import measured, plan_of

from broadgauge.specs.text.reading import read_experiment

SCRIPTS = Path(__file__).parents[1] / "scripts"
NETWORKS = ("shaped", "unshaped")


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module(name)


@pytest.fixture
def aa_runs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("aa_runs", monkeypatch)


@pytest.fixture
def before_after(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("before_after", monkeypatch)


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("pieces", monkeypatch)


@pytest.fixture
def two_hosts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("two_hosts", monkeypatch)


@pytest.mark.parametrize("platform", ["emulated", "local", "hosts"])
def test_the_experiment_of_equal_arms_is_one(aa_runs: ModuleType, platform: str) -> None:
    experiment = read_experiment(aa_runs.experiment_on(platform), "a-a")
    assert experiment.platform == platform
    assert {each.kind for each in experiment.workloads} == {"collectives", "train"}


def test_rates_of_two_hosts_are_read_as_an_experiments(two_hosts: ModuleType) -> None:
    assert two_hosts.parse_rates_gbps("200 Mbit/s, 1 Gbit/s,unshaped") == (0.2, 1.0, None)
    with pytest.raises(ValueError, match="no unit of a rate"):
        two_hosts.parse_rates_gbps("200 Mbps/s")


@pytest.mark.root
@pytest.mark.namespaces
@pytest.mark.sshd
def test_two_hosts_run_a_command_between_them_and_are_gone() -> None:
    asked = "cat /sys/class/net/eth0/address; tc qdisc show dev eth0; exit 7"
    command = [sys.executable, str(SCRIPTS / "two_hosts.py"), "--rates", "200 Mbit/s, unshaped"]
    ran = subprocess.run(
        [*command, "--", "ssh", "node1", asked],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ran.returncode == 7, ran.stderr
    assert "htb" in ran.stdout
    # sshd's own process of a connection may end after its client.
    left = [line for line in ran.stderr.splitlines() if line.startswith("left")]
    assert not [line for line in left if "sshd" not in line]


@pytest.mark.parametrize(("at_least", "number"), [(0, 15), (1, 15), (3, 45), (45, 45)])
def test_the_binomial_tail_is_scipys(aa_runs: ModuleType, at_least: int, number: int) -> None:
    expected = binomtest(at_least, number, 0.05, alternative="greater").pvalue
    assert aa_runs.binomial_tail(at_least, number, 0.05) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("slowdown_ratio", "is_different", "gate"),
    [(0.5, True, "regression"), (0.0, False, "no regression")],
)
def test_what_differs_is_called_different_and_what_does_not_is_not(
    aa_runs: ModuleType, slowdown_ratio: float, is_different: bool, gate: str
) -> None:
    run = measured(plan_of(20, [TRAIN]), np.random.default_rng(1), slowdown_ratio)
    said = aa_runs.what_is_said(run)
    (row,) = said["rows"]
    assert row["what"].endswith("step_time_s")
    assert row["is_different"] is is_different
    assert said["gate"] == gate
    (counted,) = aa_runs.counted([said])
    assert (counted.num_compared, counted.num_higher, counted.num_lower) == (1, is_different, 0)


def test_verdicts_are_counted_by_case_and_metric(aa_runs: ModuleType) -> None:
    def piece(*rows: tuple[str, float, bool]) -> dict[str, Any]:
        return {"rows": [{"what": w, "ratio": r, "is_different": d} for w, r, d in rows]}

    said = aa_runs.counted(
        [
            piece(("step", 1.1, True), ("busbw", 0.9, True)),
            piece(("step", 1.2, False), ("busbw", 0.8, True)),
            piece(("step", 0.7, True)),
        ]
    )
    counts = {each.what: (each.num_compared, each.num_higher, each.num_lower) for each in said}
    assert counts == {"step": (3, 1, 1), "busbw": (2, 0, 2)}
    whole = aa_runs.together(said)
    assert (whole.num_compared, whole.num_different) == (5, 4)
    assert whole.p_value == pytest.approx(5 * 0.05**4 * 0.95 + 0.05**5)


def test_pieces_go_on_where_they_stopped(pieces: ModuleType, tmp_path: Path) -> None:
    asked: list[int] = []

    def piece(number: int) -> dict[str, Any]:
        asked.append(number)
        if asked == [0, 1]:
            raise KeyboardInterrupt
        return {"value": 10 * number}

    with pytest.raises(KeyboardInterrupt):
        pieces.Pieces(tmp_path).run(3, 600, piece)
    pieces.Pieces(tmp_path).run(3, 600, piece)
    pieces.Pieces(tmp_path).run(3, 600, piece)
    assert asked == [0, 1, 1, 2]
    found = pieces.Pieces(tmp_path).read()
    assert [(each["number"], each["value"]) for each in found] == [(0, 0), (1, 10), (2, 20)]


def test_no_piece_is_begun_without_time_for_it(pieces: ModuleType, tmp_path: Path) -> None:
    pieces.Pieces(tmp_path).run(3, -1, lambda number: {"value": number})
    assert pieces.Pieces(tmp_path).read() == []


def test_shares_of_the_cores_are_those_of_proc_stat(pieces: ModuleType, tmp_path: Path) -> None:
    def read(line: str) -> Any:
        path = tmp_path / "stat"
        path.write_text(f"{line}\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
        return pieces.CoreTimes.now(path)

    before = read("cpu  100 0 100 100 0 0 0 10 50 0")
    shares = read("cpu  130 0 110 140 10 0 0 20 99 0").since(before)
    assert shares == pytest.approx({"idle_ratio": 0.5, "stolen_ratio": 0.1})


def write_run(folder: Path, *, status: str = "ok") -> None:
    """Two launches of a training on two networks; hello came 3 s after the plan was there."""
    (folder / "environments").mkdir(parents=True)
    for name, unix_s in (("plan.json", 1000.0), ("environments/a.json", 1003.0)):
        (folder / name).write_text("{}")
        os.utime(folder / name, (unix_s, unix_s))
    starts_s = {"b0.l0": (1010.0, 1020.0), "b1.l0": (1034.0, 1044.0)}
    records = [
        {
            "record_id": f"{launch}.t{index}",
            "launch_id": launch,
            "workload": "train",
            "shape": "2x1",
            "network": network,
            "status": status,
            "started_unix_s": start_s,
            "ended_unix_s": start_s + 10,
            "metrics": {"step_time_s": (index + 1) * (1.0 if launch == "b0.l0" else 1.5)},
            "collectives": [],
        }
        for launch, starts in starts_s.items()
        for index, (network, start_s) in enumerate(zip(NETWORKS, starts, strict=True))
    ]
    lines = (json.dumps(record) for record in reversed(records))
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")


def test_times_of_a_run_are_read_from_its_folder(before_after: ModuleType, tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    took = before_after.Took(wall_s=60.0, cpu_s=7.0)
    assert before_after.measured(tmp_path / "run", took) == {
        "step time, train 2x1 shaped": [1.0, 1.5],
        "step time, train 2x1 unshaped": [2.0, 3.0],
        "start to hello": [3.0],
        "between launches": [4.0],
        "command, less its trials": [20.0],
        "command": [60.0],
        "command's CPU time": [7.0],
    }


def test_a_run_with_a_failed_trial_is_not_compared(
    before_after: ModuleType, tmp_path: Path
) -> None:
    write_run(tmp_path / "run", status="failed")
    with pytest.raises(SystemExit, match=r"b1\.l0\.t1.* failed"):
        before_after.measured(tmp_path / "run", before_after.Took(wall_s=60.0, cpu_s=7.0))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.98, 1.009, "within"),
        (1.002, 1.009, "within"),
        (1.011, 1.02, "slower"),
        (0.99, 1.02, "can't tell"),
        (None, None, "can't tell"),
    ],
)
def test_slower_is_what_lies_above_its_bound(
    before_after: ModuleType, low: float | None, high: float | None, said: str
) -> None:
    assert before_after.verdict(low, high, before_after.bound_of("step time, train")) == said
    assert before_after.verdict(low, high, before_after.bound_of("all_reduce of 8 bytes")) == ""


def test_a_slower_version_ends_the_script_badly(
    before_after: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """6 % more, by twelve pairs that scatter by a thousandth."""
    rng = np.random.default_rng(1)

    def pieces_of(ratio: float) -> list[dict[str, Any]]:
        return [
            {
                "first": before_after.SIDES[number % 2],
                "commits": "a to b",
                "before": {"command": [1 + 0.001 * rng.standard_normal()]},
                "after": {"command": [ratio * (1 + 0.001 * rng.standard_normal())]},
                "started_unix_s": 60.0 * number,
                "idle_ratio": 0.5,
                "stolen_ratio": 0.0,
            }
            for number in range(12)
        ]

    assert before_after.show(pieces_of(1.06)) is True
    assert before_after.show(pieces_of(1.04)) is False
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| command")]
    assert [row.split("|")[-2].strip() for row in rows] == ["slower", "within"]
