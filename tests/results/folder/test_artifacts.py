"""Is what a trial leaves kept as the rank told it, bounded, and is damage said?"""

import hashlib
from pathlib import Path

import pytest
from tests.engine.making import COLLECTIVES, a_plan, make_folder

from broadgauge.engine.trial import artifacts_of
from broadgauge.messages.codec import DecodeError, encode
from broadgauge.messages.rank import Artifact, ArtifactKind
from broadgauge.results.folder import artifacts
from broadgauge.results.folder.artifacts import read_artifact
from broadgauge.results.folder.reading import read_run
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.launching import TrialOutcome
from broadgauge.specs.records.record import Record, Status


def left(path: Path, content: bytes, kind: ArtifactKind = "trace") -> Artifact:
    """A file, and what a rank says of it."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return Artifact(
        trial_id="b0.l0.t0",
        name=path.name,
        path=str(path),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        kind=kind,
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return make_folder(tmp_path, a_plan(workloads=[COLLECTIVES], launches=1))


def record_of(folder: RunFolder) -> Record:
    trial = folder.plan.launches[0].trials[0]
    return Record(
        record_id=trial.trial_id,
        case_key=trial.case_key,
        workload="w",
        network="n",
        shape="2x1",
        launch_id="b0.l0",
        block=0,
        trial=0,
        position=0,
        started_unix_s=0.0,
        ended_unix_s=1.0,
        status=Status.OK,
    )


def test_what_was_left_is_kept_and_read_back(folder: RunFolder) -> None:
    content = b"{}" * 5000
    trace = left(folder.log_folder / "rank0.trace.json", content)
    stored = folder.append(record_of(folder), {}, (trace,))
    [kept] = stored.artifacts
    assert (kept.name, kept.kind, kept.problem) == ("rank0.trace.json", "trace", None)
    Path(trace.path).unlink()
    run = read_run(folder.path)
    assert run.records[0].artifacts == (kept,)
    assert read_artifact(folder.path, kept) == content
    assert not run.notes
    assert (folder.path / str(kept.path)).stat().st_mode & 0o077 == 0


def test_what_is_not_as_told_is_not_kept_and_the_record_says_why(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_ARTIFACT_BYTES", 100)
    monkeypatch.setattr(artifacts, "MAX_TRIAL_BYTES", 150)
    logs = folder.log_folder
    changed = left(logs / "changed", b"a")
    Path(changed.path).write_bytes(b"b")
    gone = left(logs / "gone", b"a")
    Path(gone.path).unlink()
    told = (
        left(logs / "good", b"x" * 90),
        left(logs / "good", b"x" * 90),
        left(logs / "large", b"x" * 101),
        left(logs / "no_room", b"x" * 70),
        changed,
        gone,
        left(tmp_path / "elsewhere", b"a"),
        left(logs / "..hidden", b"a"),
    )
    stored = folder.append(record_of(folder), {}, told)
    assert [(kept.name, kept.problem) for kept in stored.artifacts] == [
        ("good", None),
        ("good", "another has this name"),
        ("large", "larger than the 60 B that are kept"),
        ("no_room", "larger than the 60 B that are kept"),
        ("changed", "it changed after the rank reported it"),
        ("gone", "it can't be read: No such file or directory"),
        ("elsewhere", "it lies outside of the run's folder"),
        ("..hidden", "its name is no plain file name"),
    ]
    assert [path.name for path in (folder.path / "artifacts").iterdir()] == ["b0.l0.t0.good"]


def test_a_missing_or_changed_one_is_said_on_reading(folder: RunFolder) -> None:
    two = [left(folder.log_folder / name, b"12345") for name in ("one", "two")]
    one, other = folder.append(record_of(folder), {}, two).artifacts
    (folder.path / str(one.path)).unlink()
    (folder.path / str(other.path)).write_bytes(b"1234")
    assert read_run(folder.path).notes == (
        "1 artifacts of trials are missing, such as artifacts/b0.l0.t0.one",
        "1 artifacts of trials were changed, such as artifacts/b0.l0.t0.two",
    )
    (folder.path / str(other.path)).write_bytes(b"54321")
    with pytest.raises(RunFolderError, match="was changed"):
        read_artifact(folder.path, other)
    with pytest.raises(RunFolderError, match="No such file"):
        read_artifact(folder.path, one)


def test_those_of_a_trial_without_a_record_are_removed(folder: RunFolder) -> None:
    orphan = folder.path / "artifacts" / "b0.l0.t0.trace"
    orphan.parent.mkdir()
    orphan.write_bytes(b"x")
    folder.close()
    with RunFolder.open_for_resume(folder.path) as resumed:
        assert "1 artifacts without a record were removed" in resumed.notes
    assert not orphan.exists()


def outcome(message: dict[str, object]) -> TrialOutcome:
    return TrialOutcome(
        status=Status.OK, started_unix_s=0.0, ended_unix_s=1.0, messages=((), (message,))
    )


def test_what_ranks_say_of_files_is_read(tmp_path: Path) -> None:
    trace = left(tmp_path / "trace", b"x")
    assert artifacts_of(outcome(encode(trace))) == (trace,)
    with pytest.raises(DecodeError, match="`name` is missing"):
        artifacts_of(outcome({"type": "artifact", "trial_id": "t"}))
