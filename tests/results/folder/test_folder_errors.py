"""What can't be a run folder, or can't be written, is said with its place; what is stored stays."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine.making import YAML, a_plan, make_folder, run_in

from broadgauge.results.folder.reading import StoredRun, read_run
from broadgauge.results.folder.records_file import read_records
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.history import find_runs
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.plan import Plan


@pytest.fixture
def plan() -> Plan:
    return a_plan(launches=1)


@pytest.fixture
def run_path(tmp_path: Path, plan: Plan) -> Path:
    with make_folder(tmp_path / "runs", plan) as folder:
        run_in(folder)
        return folder.path


Opener = Callable[[Path], StoredRun | RunFolder]
OPENERS: list[Opener] = [read_run, RunFolder.open_for_resume]


@pytest.mark.parametrize("opens", OPENERS)
def test_what_is_no_run_folder_is_refused_in_words(
    tmp_path: Path, run_path: Path, opens: Opener
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    cases = {
        "nowhere": "does not exist",
        "dangling": "is a link to nothing",
        "file": "is a file",
        "file/below": "a part of the path is a file|does not exist",
        "loop": "loop|Symlink|symbolic",
        "runs": f"the newest run in it: .*{run_path.name}",
        ".": "is no run folder",
    }
    for name, words in cases.items():
        with pytest.raises(RunFolderError, match=words):
            opens(tmp_path / name)


@pytest.mark.parametrize("opens", OPENERS)
def test_a_link_to_a_run_folder_is_followed(tmp_path: Path, run_path: Path, opens: Opener) -> None:
    (tmp_path / "latest").symlink_to(run_path)
    followed = opens(tmp_path / "latest")
    assert followed.records == read_run(run_path).records
    assert len(followed.records) > 0
    if isinstance(followed, RunFolder):
        followed.close()


@pytest.mark.parametrize("opens", OPENERS)
def test_links_inside_a_run_folder_are_not_followed(
    tmp_path: Path, run_path: Path, opens: Opener
) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    (run_path / "records.jsonl").rename(elsewhere)
    (run_path / "records.jsonl").symlink_to(elsewhere)
    with pytest.raises(RunFolderError, match="symbolic links"):
        opens(run_path)


@pytest.mark.parametrize("opens", OPENERS)
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("plan.json", b"{", "is no plan"),
        ("plan.json", b"[1]", "is no plan"),
        ("plan.json", b"[" * 100_000, "is no plan"),
        ("plan.json", b"\xff\xfe", "is not UTF-8"),
        ("experiment.yaml", b"\xff\xfe", "is not UTF-8"),
        ("records.jsonl", b"42\n42\n", r"records\.jsonl:1: no record"),
        ("records.jsonl", b"\0" * 1000 + b"\n{}\n", r"records\.jsonl:1: no record"),
        ("records.jsonl", b'{"record_id": NaN}\n', r"records\.jsonl:1: no record"),
    ],
)
def test_broken_files_are_named(
    run_path: Path, opens: Opener, name: str, content: bytes, words: str
) -> None:
    (run_path / name).write_bytes(content)
    with pytest.raises(RunFolderError, match=words):
        opens(run_path)
    assert (run_path / name).read_bytes() == content


@pytest.mark.parametrize("opens", OPENERS)
@pytest.mark.parametrize("name", ["records.jsonl", "experiment.yaml"])
def test_missing_files_are_named(run_path: Path, opens: Opener, name: str) -> None:
    (run_path / name).unlink()
    with pytest.raises(RunFolderError, match=name):
        opens(run_path)


@pytest.mark.parametrize("opens", OPENERS)
def test_a_broken_line_in_the_middle_is_named_and_kept(run_path: Path, opens: Opener) -> None:
    file = run_path / "records.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:50] + b"\n"
    file.write_bytes(b"".join(lines))
    with pytest.raises(RunFolderError, match=r"records\.jsonl:3: no record") as caught:
        opens(run_path)
    assert "the line is kept" in str(caught.value)
    assert file.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("opens", OPENERS)
def test_a_trial_that_is_there_twice_is_named(run_path: Path, opens: Opener) -> None:
    file = run_path / "records.jsonl"
    first = file.read_bytes().splitlines(keepends=True)[0]
    file.write_bytes(file.read_bytes() + first)
    with pytest.raises(RunFolderError, match=r":6: trial b0\.l0\.t0 is on line 1 already"):
        opens(run_path)


def test_ids_that_would_leave_the_folder_are_refused(run_path: Path) -> None:
    text = (run_path / "plan.json").read_text()
    (run_path / "plan.json").write_text(text.replace('"b0.l0.t0"', '"../../b0.l0.t0"'))
    with pytest.raises(RunFolderError, match="id of another kind"):
        read_run(run_path)


def test_a_folder_that_vanishes_is_noticed(tmp_path: Path, plan: Plan) -> None:
    with make_folder(tmp_path, plan) as folder:
        shutil.rmtree(folder.path)
        with pytest.raises(RunFolderError, match="was the folder moved or removed"):
            run_in(folder)


def test_a_records_file_that_was_replaced_is_noticed(tmp_path: Path, plan: Plan) -> None:
    with make_folder(tmp_path, plan) as folder:
        (folder.path / "records.jsonl").unlink()
        (folder.path / "records.jsonl").touch()
        with pytest.raises(RunFolderError, match="was replaced while it was written"):
            run_in(folder)
        assert not list((folder.path / "series").iterdir())


def test_too_little_space_is_said_before_anything_runs(tmp_path: Path, plan: Plan) -> None:
    with pytest.raises(RunFolderError, match=r"MB free, and a run needs 10\d+ MB") as full:
        RunFolder.create(
            tmp_path, plan=plan, experiment_yaml=YAML, started_unix_s=0, min_free_bytes=10**18
        )
    assert full.value.hint == "free some space, or choose another place with --runs-folder"
    assert not list(tmp_path.iterdir())


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """One that other users may look into."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


def as_ordinary_user(does: Callable[[], object]) -> str:
    """What a process without root's rights is told: the error's text, or `fine`."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            does()
            os.write(writes, b"fine")
        except RunFolderError as error:
            os.write(writes, str(error).encode())
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with os.fdopen(reads, encoding="utf-8") as told:
        return told.read()


def test_an_unwritable_place_is_said(public_folder: Path, plan: Plan) -> None:
    (public_folder / "runs").mkdir(mode=0o555)
    told = as_ordinary_user(lambda: make_folder(public_folder / "runs", plan))
    assert "can't make" in told
    assert "Permission denied" in told
    assert "hint: check the folder's owner" in told
    assert not list((public_folder / "runs").iterdir())


def test_an_unwritable_run_is_read_and_not_resumed(public_folder: Path, plan: Plan) -> None:
    with make_folder(public_folder, plan) as folder:
        run_in(folder)
    for path in (folder.path, *folder.path.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert as_ordinary_user(lambda: read_run(folder.path)) == "fine"
    told = as_ordinary_user(lambda: RunFolder.open_for_resume(folder.path))
    assert "can't lock" in told
    assert "Permission denied" in told


ON_A_SMALL_DISK = """
import os, subprocess, sys
from pathlib import Path
from tests.engine.making import a_plan, make_folder, run_in, trial_ids
from tests.results.folder.test_folder_errors import whole_after_full_disk
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.model import RunSummary
from broadgauge.specs.errors import RunFolderError

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=True)
plan = a_plan(launches=4)
folder = RunFolder.create(
    disk, plan=plan, experiment_yaml="name: tiny\\n", started_unix_s=0, min_free_bytes=0
)
ballast = disk / "ballast"
ballast.write_bytes(bytes(1024 * int(sys.argv[2])))
with folder:
    try:
        run_in(folder)
    except RunFolderError as error:
        print(error)
num_stored = whole_after_full_disk(folder.path)
assert 0 < num_stored < len(trial_ids(plan)), num_stored
ballast.unlink()
with RunFolder.open_for_resume(folder.path) as again:
    assert again.notes == (), again.notes
    run_in(again)
    assert [record.record_id for record in again.records] == trial_ids(plan)
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
try:
    RunFolder.open_for_resume(folder.path)
except RunFolderError as error:
    print(error)
"""


def whole_after_full_disk(path: Path) -> int:
    """How many records are there, each whole, with its series, and nothing else?"""
    read = read_records(path / "records.jsonl")
    assert read.torn_bytes == 0
    named = {name for record in read.records for name in record.series.values()}
    assert {f"series/{file.name}" for file in (path / "series").iterdir()} == named
    return len(read.records)


@pytest.mark.parametrize("ballast_kib", [850, 870, 890, 901, 912, 926])
def test_a_full_disk_is_said_and_stored_records_stay(tmp_path: Path, ballast_kib: int) -> None:
    refused = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if refused.returncode:
        pytest.skip(f"no mount namespace here: {refused.stderr.decode().strip()}")
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", ON_A_SMALL_DISK, tmp_path, str(ballast_kib)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stdout
    assert "free some space, then go on with --resume" in done.stdout
    assert "the file system is read-only" in done.stdout


@pytest.mark.parametrize("opens", OPENERS)
@pytest.mark.parametrize("name", ["plan.json", "records.jsonl", "experiment.yaml"])
@pytest.mark.parametrize("kind", ["a FIFO", "a device"])
def test_what_may_have_no_end_is_not_read(
    run_path: Path, opens: Opener, name: str, kind: str
) -> None:
    (run_path / name).unlink()
    if kind == "a FIFO":
        os.mkfifo(run_path / name)
    else:
        (run_path / name).symlink_to("/dev/zero")
    with pytest.raises(RunFolderError, match=f"{name} is {kind}, no file"):
        opens(run_path)
    if name == "plan.json":
        runs, (note,) = find_runs(run_path.parent)
        assert (runs, f"is {kind}" in note) == ((), True)
