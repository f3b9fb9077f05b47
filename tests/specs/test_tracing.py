"""May steps be traced, of which workloads, and does that leave a case what it was?"""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.specs.test_case import make_case

from broadgauge.messages.tasks import CommandTask, TracedLaunch, TrainTask
from broadgauge.specs.base import AS_STORED
from broadgauge.specs.case import Case
from broadgauge.specs.tasks import task_of
from broadgauge.specs.workload import CollectivesWorkload, CommandWorkload, TrainWorkload

COMMAND: dict[str, Any] = {
    "kind": "command",
    "command": ["train.py"],
    "metrics": [{"name": "step_time_s", "json_key": "t"}],
}


@pytest.mark.parametrize(
    ("model", "values"), [(TrainWorkload, {"kind": "train"}), (CommandWorkload, COMMAND)]
)
def test_tracing_changes_no_case(model: type[TrainWorkload], values: dict[str, Any]) -> None:
    plain = make_case(workload=model.model_validate(values))
    traced = make_case(workload=model.model_validate(values | {"trace": {"steps": 3}}))
    assert traced.key == plain.key
    assert traced.workload.tracing is not None
    assert plain.workload.tracing is None
    stored = Case.model_validate_json(traced.model_dump_json())
    assert stored.workload.tracing == traced.workload.tracing


def test_ranks_are_told() -> None:
    train = task_of(TrainWorkload.model_validate({"kind": "train", "trace": {}}))
    assert isinstance(train, TrainTask)
    assert train.traced_steps == 2
    command = task_of(CommandWorkload.model_validate(COMMAND | {"trace": {"after_steps": 5}}))
    assert isinstance(command, CommandTask)
    assert command.traced_launch == TracedLaunch(steps=2, after_steps=5)
    untraced = task_of(CommandWorkload.model_validate(COMMAND))
    assert isinstance(untraced, CommandTask)
    assert untraced.traced_launch is None


@pytest.mark.parametrize(
    ("model", "values", "words"),
    [
        (
            CollectivesWorkload,
            {"kind": "collectives", "trace": {"steps": 2}},
            "collectives have none",
        ),
        (TrainWorkload, {"kind": "train", "trace": {"after_steps": 5}}, "after_steps"),
        (TrainWorkload, {"kind": "train", "trace": {"steps": 0}}, "greater than or equal to 1"),
        (CommandWorkload, COMMAND | {"trace": {}, "stack_hook": False}, "stack_hook"),
    ],
)
def test_what_cannot_be_traced_is_refused(
    model: type[TrainWorkload], values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        model.model_validate(values)


def test_a_later_version_may_trace_collectives() -> None:
    stored = {"kind": "collectives", "trace": {"steps": 2}}
    assert CollectivesWorkload.model_validate(stored, context=AS_STORED).tracing is None
