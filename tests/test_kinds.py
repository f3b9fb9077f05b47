"""Does a room ask in its registry only which kind a workload is, and knows it every kind?"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from tests.platforms.launches import make_case

from broadgauge.advise.kinds.registry import in_advise
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.messages.tasks import Task
from broadgauge.predict.kinds import in_predict
from broadgauge.report.kinds.registry import in_report
from broadgauge.results.kinds.registry import in_results
from broadgauge.running.kinds.registry import in_running
from broadgauge.specs.workloads.workload import KINDS, MODELS, StorageWorkload, Workload

PACKAGE = Path(__file__).parents[1] / "src" / "broadgauge"
REGISTRIES = {
    "advise/kinds/registry.py",
    "engine/kinds/registry.py",
    "merging/merge.py",
    "predict/kinds.py",
    "report/kinds/registry.py",
    "results/kinds/registry.py",
    "running/kinds/registry.py",
    "specs/workloads/tasks.py",
}
ON_RANKS = {"probes/command.py", "probes/worker.py"}
"""Which task has a rank been given?"""
EXAMPLES: dict[str, dict[str, object]] = {
    "command": {
        "command": ["train.py"],
        "metrics": [{"name": "step_time_s", "json_key": "step_s"}],
    }
}
"""What a kind needs to be told beside its name."""


def questions(tree: ast.AST) -> Iterator[int]:
    """Lines that ask which kind of workload something is."""
    models = {StorageWorkload, *MODELS, *get_args(Task)}
    kinds, words = {model.__name__ for model in models}, {*KINDS}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
                if kinds & {name.id for name in ast.walk(asked) if isinstance(name, ast.Name)}:
                    yield node.lineno
            case ast.MatchClass(cls=ast.Name(id=name)) if name in kinds:
                yield node.cls.lineno
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=[asked]):
                if kinds & {name.id for name in ast.walk(asked) if isinstance(name, ast.Name)}:
                    yield node.lineno
            case ast.Compare():
                sides = [node.left, *node.comparators]
                has_kind = any(isinstance(s, ast.Attribute) and s.attr == "kind" for s in sides)
                texts = {c.value for s in sides for c in ast.walk(s) if isinstance(c, ast.Constant)}
                if has_kind and words & texts:
                    yield node.lineno


def test_a_question_is_seen() -> None:
    asking = (
        "isinstance(case.workload, TrainWorkload)",
        "isinstance(workload, (CommandWorkload, TrainWorkload))",
        "case.workload.kind == 'command'",
        "workload.kind in ('train', 'command')",
        "type(workload) is TrainWorkload",
        "match workload:\n    case CollectivesWorkload(pairwise=True):\n        pass",
    )
    for text in asking:
        assert list(questions(ast.parse(text))), text
    assert not list(questions(ast.parse("workload.has_steps and device.kind == 'cuda'")))


def test_no_room_asks_outside_of_its_registry() -> None:
    texts = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
    asked = {
        f"{name}:{line}"
        for name, text in texts.items()
        if name not in REGISTRIES | ON_RANKS
        and any(word in text for word in ("Workload", "Task", ".kind"))
        for line in questions(ast.parse(text))
    }
    assert not asked


@pytest.mark.parametrize("registry", sorted(REGISTRIES))
def test_the_type_checker_refuses_a_registry_without_a_kind(registry: str) -> None:
    assert "assert_never(" in (PACKAGE / registry).read_text()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_room_knows_every_kind(kind: str) -> None:
    case = make_case("local", workload={"kind": kind} | EXAMPLES.get(kind, {}))
    workload: Workload = case.workload
    assert in_engine(workload).trial_s(case) > 0
    assert in_results(workload).headline_metrics
    assert set(in_results(workload).scaling_metrics) <= set(in_results(workload).step_metrics)
    assert bool(in_results(workload).step_metrics) == workload.has_steps
    assert in_advise(workload).rules is not None
    assert in_report(workload).charts
    assert in_running(workload).prepare is None
    assert in_predict(workload)
