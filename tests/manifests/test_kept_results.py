"""Proves where a run keeps its results, and that what reads them needs nothing of its job."""

from pathlib import Path

import pytest
from tests.running.rendering.runs import RUN_LABEL, objects_of_run, small_run, templates_of

from broadgauge.manifests.kept_results import READER, reader_name, reader_objects
from broadgauge.manifests.names import JOB, RUN
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.kubernetes.settings import JobKind

VOLUME = "kubernetes.volumes=[{name: kept, mount: /kept, claim: shared}]"
RESULTS = "kubernetes.results=kept"
FOLDER = f"/kept/broadgauge-results/{RUN_LABEL}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    return tmp_path


@pytest.mark.parametrize("kind", ["job", "pytorchjob", "trainjob"])
def test_the_leader_alone_is_told_the_runs_folder(folder: Path, kind: JobKind) -> None:
    run = small_run(folder, VOLUME, RESULTS, kind=kind)
    spec = templates_of(run)[0]["spec"]
    ranks, leader = spec["containers"]
    assert leader["args"][leader["args"].index("--results") + 1] == FOLDER
    assert "--results" not in ranks["args"]
    claims = [each for each in spec["volumes"] if "persistentVolumeClaim" in each]
    assert len(claims) == 1  # however many containers mount it
    assert claims[0]["name"] in {each["name"] for each in leader["volumeMounts"]}


def test_without_a_volume_nothing_of_it_is_said(folder: Path) -> None:
    assert "--results" not in str(objects_of_run(small_run(folder, VOLUME)))


def test_the_reader_has_a_program_and_labels_of_its_own(folder: Path) -> None:
    """The run's go with its job, perhaps while it reads."""
    run = small_run(folder, VOLUME, RESULTS, kind="pytorchjob")
    name = reader_name(run)
    assert name != reader_name(run)  # one that fails has a successor
    program, job = reader_objects(run, name, 41)
    assert (program["metadata"]["name"], job["metadata"]["name"]) == (f"{name}-program", name)
    assert job["metadata"]["labels"] | {RUN: RUN_LABEL, JOB: name} == job["metadata"]["labels"]
    (reader,) = job["spec"]["template"]["spec"]["containers"]
    assert (reader["name"], reader["args"]) == (READER, [FOLDER, "41"])
    assert "nvidia.com/gpu" not in str(reader)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((RESULTS,), "`results`: no volume is named `kept`\n  hint: an entry of `volumes`"),
        ((VOLUME, "kubernetes.results=ketp"), "named `ketp`\n  hint: did you mean `kept`"),
        (
            ("kubernetes.volumes=[{name: kept, mount: /kept, config_map: it}]", RESULTS),
            "`kept` can't be written to, and has to keep results",
        ),
    ],
)
def test_results_need_a_volume_that_can_be_written(
    folder: Path, settings: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ExperimentError, match=words):
        small_run(folder, *settings)
