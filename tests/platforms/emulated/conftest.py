"""How do the namespace tests run a case inside a cluster, as root and as an ordinary user?"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.judgements import Note, WrongVerdict
from tests.machine_watch import watching
from tests.open_python import REPOSITORY, open_python
from tests.platforms.emulated.rate_verdict import LEAST_RATIO, MOST_RATIO, Verdict

INSIDE = Path(__file__).with_name("inside.py")
HERE = {
    "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
    "PYTHONDONTWRITEBYTECODE": "1",
}
NOBODY = 65534
LIMIT_S = 300
"""Of a case: against hangs."""

RunCase = Callable[..., Any]


def command_of(user: str, case: str, **arguments: Any) -> dict[str, Any]:
    """What do subprocess.run and Popen need to run a case as this user?"""
    is_root = os.geteuid() == 0
    if user == "root" and not is_root:
        pytest.skip("the tests do not run as root")
    command: dict[str, Any] = {"text": True, "env": {**os.environ, **HERE}}
    python, script = sys.executable, INSIDE
    if user == "ordinary" and is_root:
        opened = open_python()
        python, script = opened.executable, opened.folder / INSIDE.relative_to(REPOSITORY)
        command |= {
            "env": {**os.environ, **opened.environment},
            "user": NOBODY,
            "group": NOBODY,
            "extra_groups": [],
            "cwd": "/",
        }
    return command | {"args": [python, str(script), case, json.dumps(arguments)]}


@pytest.fixture(params=["root", "ordinary"])
def user(request: pytest.FixtureRequest) -> str:
    """As whom: root needs no user namespace, an ordinary user does."""
    return str(request.param)


@pytest.fixture
def run_case(user: str) -> RunCase:
    """Run a case of inside.py as `user` and give back its answer."""

    def run(case: str, **arguments: Any) -> Any:
        child = subprocess.run(
            **command_of(user, case, **arguments), capture_output=True, timeout=LIMIT_S, check=False
        )
        if child.returncode != 0:
            pytest.fail(child.stderr)  # no AssertionError: a case that breaks is never excused
        return json.loads(child.stdout.splitlines()[-1])

    return run


@pytest.fixture
def start_case(user: str) -> Iterator[RunCase]:
    """Start a case of inside.py as `user`; whatever is left of it is killed after the test."""
    children: list[subprocess.Popen[str]] = []

    def start(case: str, **arguments: Any) -> subprocess.Popen[str]:
        command = command_of(user, case, **arguments)
        child: subprocess.Popen[str] = subprocess.Popen(**command, stdout=subprocess.PIPE)
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture(scope="session")
def machine_watch(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the probes of this machine's cores write (tests/machine_watch.py): those of the whole
    session, where it has some."""
    repeating = request.config.pluginmanager.get_plugin("repeating")
    if repeating is not None:
        yield str(repeating.watch.folder)
        return
    with watching() as folder:
        yield str(folder)


@pytest.fixture
def judge_queues(run_case: RunCase, machine_watch: str, judgement: Note) -> Callable[..., None]:
    """Judge queues of one cluster, by what they are called; each has to be right. Where the machine
    never let one be judged, the rest being right, the test is skipped."""

    def judge(queues: dict[str, dict[str, Any]], **options: Any) -> None:
        answers = run_case("judge", watch=machine_watch, queues=list(queues.values()), **options)
        found = dict(zip(queues, answers, strict=True))
        if all(answer["verdict"] == Verdict.RIGHT for answer in answers):
            judgement(**figures_of(answers))
        else:
            for name, answer in found.items():
                judgement(name, **figures_of([answer]))
        wrong = {n: a for n, a in found.items() if a["verdict"] not in (None, Verdict.RIGHT)}
        if wrong:
            said = (f"{n} {a['verdict']}: {a['ratio']:.2%}" for n, a in wrong.items())
            raise WrongVerdict("; ".join(said).strip())
        unjudged = [f"{n} {a['reason']}".strip() for n, a in found.items() if a["reason"]]
        if unjudged:
            pytest.skip("not judged: " + "; ".join(unjudged))

    return judge


def figures_of(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Judgements of queues that say the same, in the words of the table."""
    spans = [span["ratio"] for answer in answers for span in answer["spans"]]
    reason = answers[0]["reason"]
    return {
        "figure": range_of([answer["ratio"] for answer in answers if answer["ratio"] is not None]),
        "bound": range_of([LEAST_RATIO, MOST_RATIO]),
        "spread": range_of(spans),
        "num_spans": len(spans),
        "verdict": f"not judged: {reason}" if reason else answers[0]["verdict"],
    }


def range_of(ratios: list[float]) -> str:
    """Such as `99.8 to 100.1 %`."""
    if not ratios:
        return "-"
    low, high = (f"{100 * each:.1f}" for each in (min(ratios), max(ratios)))
    return f"{low} %" if low == high else f"{low} to {high} %"
