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
    assert list(document) == ["findings", "job", "paths", "expected", "host", "run", "answers"]
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


CASES = Path(__file__).parents[1] / "doctor/log/cases"
HEALTHY = Path(__file__).parents[1] / "doctor/log/healthy"


@pytest.mark.parametrize(
    ("log", "expected", "code"),
    [
        (HEALTHY / "ib-two-nodes-2.27.log", ["rdma", "gdr"], ExitCode.OK),
        (HEALTHY / "ib-two-nodes-2.27.log", ["tcp"], ExitCode.DOCTOR_ERRORS),
        (HEALTHY / "ib-two-nodes-2.27.log", ["nvlink"], ExitCode.DOCTOR_UNKNOWN),
        (HEALTHY / "nvlink-one-node-socket-2.28.log", ["nvlink"], ExitCode.OK),
        (HEALTHY / "nvlink-one-node-socket-2.28.log", ["rdma"], ExitCode.DOCTOR_ERRORS),
        (CASES / "libibverbs-missing-16-h100.log", [], ExitCode.DOCTOR_WARNINGS),
        (CASES / "libibverbs-missing-16-h100.log", ["rdma"], ExitCode.DOCTOR_ERRORS),
        (CASES / "libibverbs-missing-16-h100.log", ["tcp"], ExitCode.OK),
        (CASES / "gdr-off-peermem-renamed.log", ["rdma"], ExitCode.DOCTOR_WARNINGS),
        (CASES / "gdr-off-peermem-renamed.log", ["gdr"], ExitCode.DOCTOR_ERRORS),
        (CASES / "no-nccl-lines.log", [], ExitCode.DOCTOR_UNKNOWN),
        (CASES / "no-nccl-lines.log", ["rdma"], ExitCode.DOCTOR_UNKNOWN),
        (CASES / "traceback-without-rank.log", ["rdma"], ExitCode.DOCTOR_ERRORS),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else str(value),
)
def test_what_is_expected_and_is_not(
    log: Path, expected: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for each in expected for word in ("--expect", each)]
    ended, document = asked(capsys, "--log", str(log), *words)
    assert ended == code
    if code == ExitCode.DOCTOR_ERRORS and expected and "traceback" not in log.name:
        assert document["findings"][0]["rule"] == f"expected-{expected[0]}"
        assert document["findings"][0]["evidence"] or "one node" in words_of(document)


def test_a_job_of_one_node_is_no_proof_of_rdma(capsys: pytest.CaptureFixture[str]) -> None:
    log = str(HEALTHY / "nvlink-one-node-socket-2.28.log")
    _, document = asked(capsys, "--log", log, "--expect", "rdma")
    assert document["findings"][0]["symptom"] == "RDMA was expected, and is not used"


def words_of(document: dict[str, Any]) -> str:
    return str(document["findings"][0]["cause"])


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (HEALTHY / "roce-two-nodes-2.21.log", "RDMA: on · GPUDirect RDMA: on"),
        (CASES / "gdr-off-peermem-renamed.log", "RDMA: on · GPUDirect RDMA: off"),
        (CASES / "no-adapter-16-h100.log", "RDMA: off · GPUDirect RDMA: off"),
        (CASES / "no-nccl-lines.log", "RDMA: unknown · GPUDirect RDMA: unknown"),
        (
            HEALTHY / "nvlink-one-node-ib-2.18.log",
            "RDMA: not needed · GPUDirect RDMA: not needed · NVLink: on",
        ),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_the_first_line_answers(log: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--log", str(log)])
    assert capsys.readouterr().out.strip().splitlines()[0] == line


def test_without_a_line_of_nccl_what_is_wrong_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "x.log"
    log.write_text("OSError: [Errno 28] No space left on device\n")
    assert main(["doctor", str(log)]) == 9
    told = capsys.readouterr().out
    places = [told.index(words) for words in ("RDMA: unknown", "is full", "1 error", "no line of")]
    assert places == sorted(places)


def test_ranks_that_differ_are_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "job.log"
    log.write_text(f"{nccl_log('roce', 0)}\n{nccl_log('sockets', 1)}")
    main(["doctor", "--log", str(log)])
    assert capsys.readouterr().out.strip().startswith("RDMA: in part")


def test_normal_for_sockets_says_what_rdma_would_carry(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """16 H100s whose image lacks libibverbs: 3.4 GB/s is normal, and no answer."""
    log = str(CASES / "libibverbs-missing-16-h100.log")
    words = ["doctor", "--log", log, "--busbw", "3.4", "--nic-rate", "400 Gbit/s"]
    assert main(words) == ExitCode.DOCTOR_WARNINGS
    told = " ".join(capsys.readouterr().out.split())
    assert "3.4 GB/s busbw is normal for TCP sockets" in told
    assert "RDMA (RoCE with GPUDirect) over NICs of this rate carries 46 to 48 GB/s" in told
    assert "libibverbs1" in told


def test_the_gpu_that_the_user_names_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a name in the log two GPUs of two hosts may be anything."""
    log = tmp_path / "job.log"
    log.write_text(
        "\n".join(
            line
            for line in (CASES / "libibverbs-missing-16-h100.log").read_text().splitlines()
            if "NVIDIA" not in line and "P2P" not in line
        )
    )
    assert main(["doctor", "--log", str(log)]) == ExitCode.OK
    assert main(["doctor", "--log", str(log), "--gpu", "rtx-4090"]) == ExitCode.OK
    assert main(["doctor", "--log", str(log), "--gpu", "h100-sxm"]) == ExitCode.DOCTOR_WARNINGS
    capsys.readouterr()


def test_this_machine_without_adapters_can_not_use_rdma(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is expected of a machine is that a job here could."""
    has_adapters = any(Path("/sys/class/infiniband").glob("*"))
    code, document = asked(capsys, "--host", "--expect", "rdma")
    state = document["answers"]["rdma"]["state"]
    assert state == "off" or has_adapters
    assert (code == ExitCode.DOCTOR_ERRORS) >= (state == "off")
    main(["doctor", "--host"])
    first = capsys.readouterr().out.strip().splitlines()[0]
    assert first.startswith("RDMA: can")


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


def test_a_run_that_lost_a_host_is_not_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(GOLDEN, tmp_path / "run"))
    first, *others = (run / "records.jsonl").read_text().splitlines()
    message = "the agent on node-b: it closed the connection"
    error = {"kind": "launcher_lost", "message": message}
    lost = json.dumps(json.loads(first) | {"status": "failed", "error": error})
    (run / "records.jsonl").write_text("\n".join([lost, *others, ""]))
    assert main(["doctor", str(run)]) == ExitCode.DOCTOR_ERRORS
    words = " ".join(capsys.readouterr().out.split())
    assert f"error trials failed: {message}" in words
    assert "nothing found" not in words


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
        (["last", "--expect", "rdma"], "--expect belongs to --log or --host"),
        (["--log", "-", "--busbw", "fast"], "--busbw: 'fast' is no bus bandwidth"),
        (["--log", "-", "--busbw", "nan"], "--busbw: 'nan' is no bus bandwidth"),
        (["--log", "-", "--nic-rate", "400"], "--nic-rate: a rate in quotes needs a unit"),
        (["--log", "-", "--nic-rate", "0 Gbit/s"], "is no rate of a NIC"),
        (["--log", "-", "--gpu", "h1000"], "h1000"),
        (["--log", "no-such.log"], "no-such.log"),
        (["no-such-run"], "no-such-run does not exist"),
        *(([f"no{x}"], f"no{x} can't be read") for x in (".log", ".stdout", ".log.bz2")),
    ],
)
def test_what_cannot_be_asked(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", *words]) in (ExitCode.BAD_INPUT, ExitCode.RUN_FOLDER)
    told = capsys.readouterr()
    assert told.out == ""
    assert message in " ".join(told.err.split())


def test_a_file_is_a_log_and_a_folder_without_a_run_holds_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in range(2):
        words = f"node0:{rank + 1}:1 [0] NCCL INFO Using network IB\n"
        (tmp_path / f"rank{rank}.log").write_text(words)
    files = [str(tmp_path / f"rank{rank}.log") for rank in range(2)]
    told = []
    for asked in (["--log", *files], files, [str(tmp_path)], [files[0], "--log", files[1]]):
        assert main(["doctor", *asked, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out)["job"]["num_processes"])
    assert told == [2, 2, 2, 2]


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


def test_a_pipe_is_a_log_and_a_folder_of_runs_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"node0:1:1 [0] NCCL INFO x\n")
    os.close(writing)
    assert main(["doctor", f"/dev/fd/{reading}", "--json"]) == 0
    os.close(reading)
    assert json.loads(capsys.readouterr().out)["job"]["num_processes"] == 1
    (tmp_path / "runs/a").mkdir(parents=True)
    (tmp_path / "runs/a/plan.json").write_text("{}")
    (tmp_path / "runs/a.log").write_text("node0:1:1 [0] NCCL INFO x\n")
    for name in (str(tmp_path / "runs"), ""):
        assert main(["doctor", name]) == ExitCode.RUN_FOLDER
