"""Proves that imported files are a run like any other: shown, reported, exported, compared."""

import hashlib
import json
from pathlib import Path

import pytest
from tests.importing.reading import FILES, NCCL_TESTS

from broadgauge.cli.main import main
from broadgauge.importing.run import split_label
from broadgauge.results.folder.artifacts import read_artifact
from broadgauge.results.folder.reading import read_run
from broadgauge.specs.errors import InputError

ALL_REDUCE = NCCL_TESTS / "all_reduce.txt"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_of(*arguments: object, code: int = 0) -> Path:
    """The folder that `broadgauge import` made."""
    before = set(Path("runs").glob("*"))
    assert main(["import", *map(str, arguments)]) == code
    (folder,) = set(Path("runs").glob("*")) - before
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main(list(map(str, arguments))) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_bandwidth_gets_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_of(ALL_REDUCE, "--path", "nvlink")
    shown = said(capsys, "show", folder, "--details")
    assert "normal: 300 GB/s busbw, 250 to 400 GB/s expected: 2 NVIDIA H200 over nvlink" in shown
    assert "unknown: normal" not in shown
    assert "measured by nccl-tests 2.19.6, not by Broadgauge: all_reduce.txt (SHA-256" in shown


def test_what_is_not_known_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path("l40s.txt").write_text(ALL_REDUCE.read_text().replace("NVIDIA H200", "NVIDIA L40S"))
    shown = said(capsys, "show", run_of("l40s.txt"))
    words = "unknown whether 300 GB/s busbw is normal: the file names no path between the GPUs"
    assert f"{words} (say what it ran on: `--gpu h100-sxm --path nvlink`)" in shown


def test_a_bare_table_is_judged_as_the_doctor_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert "normal: 300 GB/s busbw, 250 to 400 GB/s" in said(capsys, "show", run_of(ALL_REDUCE))


def test_too_little_is_no_warning_where_nothing_says_nvlink(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = ALL_REDUCE.read_text().replace("894.34  300.15  300.15", "8943.4  30.02  30.02")
    Path("slow.txt").write_text(slow)
    words = "too low: 30 GB/s of 250 to 400 GB/s busbw expected: 2 NVIDIA H200 over nvlink"
    assert f"{words}, if NVLink joins these GPUs" in said(capsys, "show", run_of("slow.txt"))
    run_of("slow.txt", "--path", "nvlink", "--name", "known", code=8)


def test_a_slow_network_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(FILES.glob("node*-pid*.log"))
    folder = run_of(*files, "--network", "roce-400g*8", code=8)
    (record, *_) = read_run(folder).records
    (finding,) = [each for each in record.findings if each.rule == "busbw-below-expected"]
    assert finding.symptom == (
        "too low: 314 GB/s of 364 to 384 GB/s busbw expected: "
        "400 Gbit/s RoCE with GPUDirect RDMA, 8 NICs"
    )
    assert "busbw-below-expected" in said(capsys, "show", folder, "--json")


def test_nothing_of_this_machine_is_in_it() -> None:
    run = read_run(run_of(FILES / "fio-randread.json"))
    (environment,) = run.environments.values()
    known = {name for name, value in environment if value not in (None, (), {})}
    assert known == {"broadgauge", "platform"}
    assert environment.platform == "imported"
    assert run.records[0].nodes == ()


def test_the_file_itself_is_kept() -> None:
    folder = run_of(NCCL_TESTS / "sendrecv.txt", ALL_REDUCE)
    records = read_run(folder).records
    kept = {each.name: read_artifact(folder, each) for r in records for each in r.artifacts}
    assert kept["all_reduce.txt"] == ALL_REDUCE.read_bytes()
    sha256 = hashlib.sha256(ALL_REDUCE.read_bytes()).hexdigest()
    assert any(sha256 in line for r in records for f in r.findings for line in f.evidence)
    assert not list(folder.glob("*.part"))
    assert sha256 in (folder / "experiment.yaml").read_text()


def test_values_of_secrets_are_not_in_the_folder() -> None:
    text = (NCCL_TESTS / "all_reduce.json").read_text()
    Path("secret.json").write_text(text.replace('"env":[]', '"env":["HF_TOKEN=hf_abcdef"]'))
    folder = run_of("secret.json")
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"HF_TOKEN=***" in kept
    assert b"hf_abcdef" not in kept
    (record,) = read_run(folder).records
    assert any("secrets are masked" in line for line in record.findings[0].evidence)


def test_files_alike_are_launches_of_one_case(capsys: pytest.CaptureFixture[str]) -> None:
    slower = ALL_REDUCE.read_text().replace("894.34  300.15  300.15", "900.00  298.26  298.26")
    for number in range(3):
        Path(f"run{number}.txt").write_text(slower if number else ALL_REDUCE.read_text())
    folder = run_of("run0.txt", "run1.txt", "run2.txt")
    run = read_run(folder)
    assert len(run.plan.cases) == 1
    assert [record.launch_id for record in run.records] == ["b0.l0", "b1.l0", "b2.l0"]
    assert "299 GB/s" in said(capsys, "show", folder)


def test_of_several_launches_the_worst_is_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    slow = ALL_REDUCE.read_text().replace("894.34  300.15  300.15", "8943.4  30.02  30.02")
    Path("slow.txt").write_text(slow)
    folder = run_of("slow.txt", ALL_REDUCE, "--path", "nvlink", code=8)
    words = "too low: 30 GB/s of 250 to 400 GB/s busbw expected: 2 NVIDIA H200 over nvlink"
    assert f"{words}; in 1 of 2 launches" in said(capsys, "show", folder)


def test_labels_are_networks_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    slow = ALL_REDUCE.read_text().replace("894.34  300.15  300.15", "1788.7  150.08  150.08")
    Path("slow.txt").write_text(slow)
    folder = run_of(f"nvlink={ALL_REDUCE}", "pcie=slow.txt", "--name", "paths")
    assert folder.name.startswith("paths-")
    shown = said(capsys, "show", folder)
    assert "nvlink" in shown
    assert "pcie" in shown
    compared = said(capsys, "compare", folder)
    assert "Each label (B) against the first (A)" in compared
    assert "all_reduce 1x2 pcie against all_reduce 1x2 nvlink" in compared
    assert "0.5" in compared
    assert "by size: 1 KiB to 64 MiB alike (within 5 %), 256 MiB 0.5 times as high" in compared
    first, second = run_of(ALL_REDUCE), run_of("slow.txt")
    assert "all_reduce 1x2 imported" in (compared := said(capsys, "compare", first, second))
    assert "by size: 1 KiB to 64 MiB alike (within 5 %), 256 MiB 0.5 times as high" in compared


def test_report_and_exports(capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_of(ALL_REDUCE, FILES / "iperf3.json", FILES / "fio-two-jobs.json")
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert "imported, not measured by Broadgauge" in page
    assert "What was imported" in page
    csv = said(capsys, "export", folder, "--format", "csv", "--table", "collectives")
    assert csv.count(",nccl-tests,") == 10
    exported = json.loads(said(capsys, "export", folder, "--format", "json"))
    assert len(exported["records"]) == 4
    assert "$" not in said(capsys, "show", folder), "nobody knows how long GPUs were held"


def test_failures_are_failed_trials() -> None:
    folder = run_of(FILES / "iperf3-refused.json", code=3)
    (record,) = read_run(folder).records
    assert record.status == "failed"
    assert record.error is not None
    assert record.error.message == "unable to connect to server: Connection refused"


def test_an_imported_run_can_be_diagnosed_and_not_run_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = run_of(NCCL_TESTS / "nccl_debug.txt")
    assert main(["doctor", str(folder)]) in (0, 8)
    capsys.readouterr()
    assert main(["run", "--resume", str(folder)]) == 2
    assert "was imported: there is nothing to run" in capsys.readouterr().err
    assert main(["run", "quickstart", "--against", str(folder)]) == 2
    assert "was imported: there is nothing to run" in capsys.readouterr().err


BAD = {
    "no file": (["nowhere.txt"], "nowhere.txt can't be read"),
    "no count": ([ALL_REDUCE, "--nodes", "two"], "--nodes two: not a number"),
    "no nodes": ([ALL_REDUCE, "--nodes", "0"], "--nodes 0: not a number"),
    "no GPU": ([ALL_REDUCE, "--gpu", "h1000"], "no gpu `h1000`"),
    "no network": ([ALL_REDUCE, "--network", "carrier-pigeon"], "no network `carrier-pigeon`"),
    "no rate": ([ALL_REDUCE, "--nic-rate", "fast"], "--nic-rate fast:"),
    "no name": ([ALL_REDUCE, "--name", "A B"], "--name A B: no name of a run"),
    "no label": ([f"A B={ALL_REDUCE}"], "no label"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_flags_are_one_message_and_leave_no_folder(
    arguments: list[object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", *map(str, arguments)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
    assert not Path("runs").exists()


def test_labels() -> None:
    Path("a=b.txt").write_text("x")
    assert split_label("a=b.txt") == ("imported", "a=b.txt"), "a file of that name comes first"
    assert split_label("roce=x.txt") == ("roce", "x.txt")
    assert split_label("/data/x=1/all.txt") == ("imported", "/data/x=1/all.txt")
    with pytest.raises(InputError, match="`RoCE` is no label"):
        split_label("RoCE=x.txt")
