"""Does `broadgauge doctor` tell logs, a run and this machine, with a code that a pod can act on?"""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.planted_nccl import MEMLOCK, nccl_log

from broadgauge.cli.main import main
from broadgauge.specs.errors import ExitCode

LOGS = Path(__file__).parents[1] / "doctor/machine/logs"
GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"
KEYS = ["rule", "severity", "symptom", "evidence", "cause", "fix", "confidence"]


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["doctor", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("nvlink", ExitCode.OK),
        ("two-nodes", ExitCode.DOCTOR_WARNINGS),
        ("wrong-interface", ExitCode.DOCTOR_ERRORS),
    ],
)
def test_the_code_is_that_of_the_worst_finding(
    scenario: str, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, document = asked(capsys, "--log", str(LOGS / f"2.28.9-{scenario}.log.gz"))
    assert ended == code
    assert list(document) == ["findings", "job", "paths", "expected", "host", "run"]
    assert all(list(finding) == KEYS for finding in document["findings"])
    assert document["job"]["num_processes"] == 2
    assert document["host"] is document["run"] is None


def test_what_a_person_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--log", str(LOGS / "2.28.9-sockets-inside.log.gz")]) == 8
    words = " ".join(capsys.readouterr().out.split())
    assert "network Socket" in words
    assert "0 · T 1 T ·" in words
    assert "T: sockets, TCP" in words
    assert words.endswith("3 warnings, 3 notes")


def test_one_stream_of_several_pods(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{nccl_log('sockets', 0, MEMLOCK)}\n{nccl_log('sockets', 1)}"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, document = asked(capsys, "--log", "-")
    assert code == ExitCode.DOCTOR_ERRORS
    assert any(finding["rule"] == "memlock" for finding in document["findings"])


def test_a_run_is_told_with_where_each_finding_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(GOLDEN, tmp_path / "run"))
    launch = json.loads((run / "plan.json").read_text())["launches"][0]["launch_id"]
    for rank in (0, 1):
        text = nccl_log("sockets", rank, *([MEMLOCK] if rank == 0 else []))
        (run / "logs").mkdir(exist_ok=True)
        (run / "logs" / f"{launch}.rank{rank}.nccl.log").write_text(text)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    code, document = asked(capsys, str(run))
    assert code == ExitCode.DOCTOR_ERRORS
    [finding] = [each for each in document["findings"] if each["rule"] == "memlock"]
    assert list(finding) == [*KEYS, "cases", "trials", "launches", "ranks"]
    assert finding["launches"] == [launch]
    assert finding["ranks"] == [0]
    assert document["run"]["folder"] == str(run)
    assert main(["doctor", str(run)]) == ExitCode.DOCTOR_ERRORS
    words = " ".join(capsys.readouterr().out.split())
    assert "What NCCL did, by its logs" in words
    assert f"where {finding['cases'][0].split()[0]}" in words
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert after == before, "a doctor changes nothing"


@pytest.mark.parametrize(
    ("busbw", "rule", "code"),
    [
        ("47", "busbw-as-expected", ExitCode.OK),
        ("3.4", "busbw-below-expected", ExitCode.DOCTOR_WARNINGS),
    ],
)
def test_is_my_number_normal(
    busbw: str,
    rule: str,
    code: ExitCode,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "job.log"
    log.write_text(f"{nccl_log('roce', 0)}\n{nccl_log('roce', 1)}")
    words = ("--log", str(log), "--busbw", busbw, "--nic-rate", "400 Gbit/s")
    ended, document = asked(capsys, *words)
    assert ended == code
    assert rule in [finding["rule"] for finding in document["findings"]]
    assert document["expected"]["nic_low_gbyte_per_s"] == pytest.approx(45.5)
    assert document["expected"]["sources"]
    assert main(["doctor", *words]) == code
    told = " ".join(capsys.readouterr().out.split())
    assert "should be 400 Gbit/s RoCE with GPUDirect RDMA: 46 to 48 GB/s a NIC" in told


def test_this_machine_without_torch(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = asked(capsys, "--host")
    assert code in (ExitCode.OK, ExitCode.DOCTOR_WARNINGS, ExitCode.DOCTOR_ERRORS)
    there = {path.name for path in Path("/sys/class/net").iterdir()} - {"lo"}
    assert {nic["name"] for nic in document["host"]["nics"]} <= there
    said = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "broadgauge", "doctor", "--host"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == code
    imported = {line.rpartition("|")[2].strip() for line in said.stderr.splitlines()}
    assert "broadgauge.doctor.host.findings" in imported
    assert imported & {"torch", "numpy"} == set()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "doctor of what?"),
        (["last", "--log", "x.log"], "both a run (last) and --log"),
        (["--host", "--rules", "mine.yaml"], "--rules belongs to --log"),
        (["--host", "--busbw", "3"], "--busbw belongs to --log"),
        (["--log", "-", "--busbw", "fast"], "--busbw: 'fast' is no bus bandwidth"),
        (["--log", "-", "--busbw", "nan"], "--busbw: 'nan' is no bus bandwidth"),
        (["--log", "-", "--nic-rate", "400"], "--nic-rate: a rate in quotes needs a unit"),
        (["--log", "-", "--nic-rate", "0 Gbit/s"], "is no rate of a NIC"),
        (["--log", "-", "--gpu", "h1000"], "h1000"),
        (["--log", "no-such.log"], "no-such.log"),
        (["no-such-run"], "no-such-run"),
    ],
)
def test_what_cannot_be_asked(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", *words]) in (ExitCode.BAD_INPUT, ExitCode.RUN_FOLDER)
    told = capsys.readouterr()
    assert told.out == ""
    assert message in " ".join(told.err.split())


def test_nothing_of_a_log_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "x.log"
    words = "\x1bc\x9b31m\u202eRTL"
    log.write_text(
        f"node0:1:2 [0] NCCL INFO Using network {words}\n"
        f"node0:1:2 [0] NCCL INFO NCCL_IB_HBA set by environment to {words}\n"
    )
    main(["doctor", "--log", str(log)])
    told = capsys.readouterr().out
    assert "RTL" in told
    assert not {"\x1b", "\x9b", "\u202e"} & set(told)


def test_a_name_that_is_no_utf_8_is_in_valid_json(tmp_path: Path) -> None:
    name = tmp_path / "x\udcffy.log"
    name.write_text("node0:1:2 [0] NCCL WARN weird\n")
    ran = subprocess.run(
        [sys.executable, "-m", "broadgauge", "doctor", "--log", str(name), "--json"],
        capture_output=True,
        check=False,
    )
    assert json.loads(ran.stdout.decode("utf-8"))["job"]["num_processes"] == 1


@pytest.mark.parametrize("name", ["a" * 300, "pipe.yaml"])
def test_what_cannot_be_opened_is_one_message(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    good = str(LOGS / "2.28.9-nvlink.log.gz")
    words = ["--log", name] if name.startswith("a") else ["--log", good, "--rules"]
    assert main(["doctor", *words, *([] if "a" in name[:1] else [str(tmp_path / name)])]) == 2
    assert capsys.readouterr().err.startswith("broadgauge: ")


def test_tokens_in_variables_of_this_machine_are_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "hf_" + "a1B2" * 5
    monkeypatch.setenv("NCCL_IB_HCA", token)
    main(["doctor", "--host"])
    main(["doctor", "--host", "--json"])
    assert token not in capsys.readouterr().out


def test_a_job_of_thousands_takes_time_that_grows_with_it(tmp_path: Path) -> None:
    """Counted: how often the node of a process is asked for, at 4 times the ranks."""
    from broadgauge.doctor.log import job
    from broadgauge.doctor.log.findings import log_findings
    from broadgauge.doctor.log.reading import read_text

    def questions(num_ranks: int) -> int:
        lines = []
        for rank in range(num_ranks):
            before = f"node{rank // 8}:{1000 + rank % 8}:7 [{rank % 8}] NCCL INFO "
            begin = f"ncclCommInitRank comm 0x{rank + 1:x} rank {rank} nranks {num_ranks} "
            lines += [
                f"{before}Using network IB",
                f"{before}{begin}cudaDev 0 nvmlDev 0 busId 1000 commId 0xabc - Init START",
                f"{before}Channel 00/0 : {rank}[0] -> {(rank + 1) % num_ranks}[0] [send] via "
                "NET/IB/0",
            ]
        reading = read_text("\n".join(lines))
        count = 0
        real = job.node_of

        def counting(*arguments: Any) -> str:
            nonlocal count
            count += 1
            return real(*arguments)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(job, "node_of", counting)
            assert log_findings(reading)
        return count

    assert questions(1024) <= 5 * questions(256)


def test_a_rule_whose_places_touch_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It could part a line in as many ways as to take hours."""
    rules = tmp_path / "w.yaml"
    rules.write_text(
        "rules:\n  - {id: boom, means: a, source: b, lines: [{says: '{a:word}{b:word} END'}]}\n"
    )
    log = str(LOGS / "2.28.9-nvlink.log.gz")
    assert main(["doctor", "--log", log, "--rules", str(rules)]) == ExitCode.BAD_INPUT
    assert "two places touch" in capsys.readouterr().err


def test_a_log_that_is_cut_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.log.gz"
    log.write_bytes((LOGS / "2.28.9-nvlink.log.gz").read_bytes()[:15])
    code, document = asked(capsys, "--log", str(log))
    assert code == ExitCode.DOCTOR_WARNINGS
    [finding] = document["findings"]
    assert finding["rule"] == "log-not-read-whole"
    assert "x.log.gz" in finding["evidence"][0]
