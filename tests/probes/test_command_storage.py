"""Proves probes/command_storage.py: what a command's placeholders become on a node."""

from dataclasses import replace
from pathlib import Path

import pytest

from broadgauge.messages.storage import ObjectPlace, StoragePlace
from broadgauge.messages.tasks import CommandTask
from broadgauge.probes.command_storage import placed
from broadgauge.probes.trial import RefusedError

TASK = CommandTask(
    command=("train.py", "--data={storage.data}", "{not.ours}", "{storage.model}/weights"),
    working_directory=None,
    metrics=(),
)


def on(folder: Path) -> CommandTask:
    return replace(TASK, storage=StoragePlace(name="disk", folder=str(folder)))


def test_folders_of_the_storage_stand_in_words_and_variables(tmp_path: Path) -> None:
    environment = {"HOME": "/root", "OUT": "{storage.checkpoints}/now"}
    task, variables = placed(on(tmp_path), {"LR": "1"}, environment)
    folder = str(tmp_path)
    words = ("train.py", f"--data={folder}/data", "{not.ours}", f"{folder}/model/weights")
    assert task.command == words
    assert variables == {"LR": "1", "OUT": f"{folder}/checkpoints/now"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "data", "model"]


def test_what_is_in_a_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").write_text("x")
    placed(on(tmp_path), {}, {})
    assert (tmp_path / "data" / "mine").read_text() == "x"


def test_a_bucket_is_a_url() -> None:
    objects = ObjectPlace(bucket="mine", prefix="runs/a", endpoint="http://127.0.0.1:1")
    task, _ = placed(replace(TASK, storage=StoragePlace(name="s3", objects=objects)), {}, {})
    assert task.command[1] == "--data=s3://mine/runs/a/data"


def test_without_placeholders_nothing_changes(tmp_path: Path) -> None:
    task = replace(on(tmp_path), command=("train.py",))
    assert placed(task, {"A": "b"}, {"HOME": "/root"}) == (task, {"A": "b"})
    assert not list(tmp_path.iterdir())


def test_what_stands_for_nothing_is_refused(tmp_path: Path) -> None:
    task = replace(on(tmp_path), command=("train.py", "{storage.dta}"))
    with pytest.raises(RefusedError, match=r"`\{storage\.dta\}` stands for nothing"):
        placed(task, {}, {})


def test_without_a_storage_it_is_refused() -> None:
    with pytest.raises(RefusedError, match="this workload has none"):
        placed(TASK, {}, {})


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"storage disk: .*No such file"):
        placed(on(tmp_path / "gone"), {}, {})
