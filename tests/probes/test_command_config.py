"""Proves probes/command_config.py: the published file's keys become a command's arguments."""

from pathlib import Path

import pytest
from tests.agent.pod.test_article_config import EXPECTED, PUBLISHED

from broadgauge.probes.command_config import configured
from broadgauge.probes.trial import RefusedError
from broadgauge.specs.tasks import command_task
from broadgauge.specs.workload import CommandWorkload

METRICS = [{"name": "loss", "regex": "loss=(.*)"}]


def task_of(**keys: object) -> CommandWorkload:
    command = ["-m", "instructlab.training.main_ds"]
    data = {"kind": "command", "command": command, "metrics": METRICS, **keys}
    return CommandWorkload.model_validate(data)


def test_the_published_file_gives_the_articles_words(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(PUBLISHED)
    workload = task_of(config="config.json")
    task, variables = configured(command_task(workload), tmp_path)
    assert ["--module", *task.command[1:]] == EXPECTED.split()[4:]
    assert variables == {}
    assert "config.json" in workload.words_of_files  # it is sent to pods


def test_a_variable_of_the_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"NCCL_SOCKET_NTHREADS": 4, "x": true, "nnodes": 2}')
    task, variables = configured(command_task(task_of(config="c.json")), tmp_path)
    assert task.command == ("-m", "instructlab.training.main_ds", "--x")
    assert variables == {"NCCL_SOCKET_NTHREADS": "4"}


@pytest.mark.parametrize("text", [None, "[]", "{", "\udcff", '{"a": "' + "x" * (1 << 20) + '"}'])
def test_a_file_that_can_not_be_read_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "c.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RefusedError, match=r"config .*c\.json"):
        configured(command_task(task_of(config="c.json")), tmp_path)


def test_without_one_nothing_changes_and_keys_of_cases_stay(tmp_path: Path) -> None:
    task = command_task(task_of())
    assert configured(task, tmp_path) == (task, {})
    assert "config" not in task_of().model_dump(mode="json", exclude_defaults=True)
