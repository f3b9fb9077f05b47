"""Does the work of reading a run grow with its trials, and not with the square of its cases?

Function calls are counted, not seconds: five times the cases make five times the calls.
"""

import cProfile
import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.report.charts.drawing import Drawing
from broadgauge.report.export.run_tables import to_csv, to_json
from broadgauge.report.page.html import render
from broadgauge.report.terminal.printing import print_run
from broadgauge.results.comparing.compare_cases import against_reference, compare_runs
from broadgauge.results.folder.reading import read_plan
from broadgauge.results.folder.records_file import read_records
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.record import Record, Status
from broadgauge.specs.workloads.workload import TrainWorkload

BLOCKS = 5
FEW, MANY = 12, 60
MOST_GROWTH = 1.2 * MANY / FEW


def many_cases(number: int) -> Plan:
    """A training on so many networks."""
    cases = tuple(
        Case(
            workload=TrainWorkload(kind="train"),
            network=Network(name=f"n{index}", rate_gbps=1.0 + index),
            nodes=2,
            ranks_per_node=1,
            device="cpu",
            backend="gloo",
            environment={},
        )
        for index in range(number)
    )
    launches = tuple(
        PlannedLaunch(
            launch_id=f"b{block}.l{index}",
            block=block,
            expected_s=1,
            trials=(PlannedTrial(trial_id=f"b{block}.l{index}.t0", case_key=case.key, trial=0),),
        )
        for block in range(BLOCKS)
        for index, case in enumerate(cases)
    )
    return Plan(experiment_name="x", seed=0, cases=cases, launches=launches, expected_s=1)


def records_of(plan: Plan) -> list[Record]:
    cases = {case.key: case for case in plan.cases}
    return [
        Record(
            record_id=trial.trial_id,
            case_key=trial.case_key,
            workload="train",
            network=cases[trial.case_key].network_name,
            shape="2x1",
            launch_id=launch.launch_id,
            block=launch.block,
            trial=0,
            position=index % len(cases),
            started_unix_s=float(index),
            ended_unix_s=index + 1.0,
            status=Status.OK,
            metrics={"step_time_s": 1.0 + 0.01 * (index % 7)},
        )
        for index, launch in enumerate(plan.launches)
        for trial in launch.trials
    ]


def a_run(plan: Plan, records: Sequence[Record]) -> RunSummary:
    return summarise_run(
        folder=Path("x"), plan=plan, records=records, experiment_yaml="", environments={}
    )


def shown(run: RunSummary) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_run(analysed(run), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def num_calls(work: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


VIEWS: dict[str, Callable[[RunSummary], object]] = {
    "show": shown,
    "report": lambda run: render(analysed(run)),
    "networks compared": against_reference,
    "runs compared": lambda run: compare_runs(run, run),
    "csv": lambda run: to_csv(analysed(run)),
    "json": lambda run: to_json(analysed(run)),
}


@pytest.fixture(scope="module")
def runs() -> tuple[RunSummary, RunSummary]:
    few, many = (many_cases(number) for number in (FEW, MANY))
    return a_run(few, records_of(few)), a_run(many, records_of(many))


def test_reading_and_summarising_grow_with_the_trials(tmp_path: Path) -> None:
    calls = []
    for number in (FEW, MANY):
        plan = many_cases(number)
        (tmp_path / "plan.json").write_text(plan.model_dump_json())
        lines = (record.model_dump_json() + "\n" for record in records_of(plan))
        (tmp_path / "records.jsonl").write_text("".join(lines))

        def read() -> None:
            plan, _ = read_plan(tmp_path)
            a_run(plan, read_records(tmp_path / "records.jsonl").records)

        calls.append(num_calls(read))
    assert calls[1] / calls[0] < MOST_GROWTH


@pytest.fixture
def nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are drawn by a program of their own, whose calls are not Python's."""
    monkeypatch.setattr("broadgauge.report.page.html.runtime", lambda: None)
    empty = Drawing(wide_svg="", narrow_svg="", vega_json="{}")
    monkeypatch.setattr("broadgauge.report.page.charts.draw", lambda *_: empty)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.usefixtures("nothing_drawn")
def test_a_view_grows_with_the_trials(runs: tuple[RunSummary, RunSummary], view: str) -> None:
    few, many = (num_calls(lambda run=run: VIEWS[view](run)) for run in runs)
    assert many / few < MOST_GROWTH, view


def test_a_case_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[bytes] = []
    sha256 = hashlib.sha256

    def counting(data: bytes) -> object:
        hashed.append(data)
        return sha256(data)

    plan = many_cases(FEW)
    monkeypatch.setattr("broadgauge.specs.case.hashlib.sha256", counting)
    plan = Plan.model_validate_json(plan.model_dump_json())
    run = a_run(plan, records_of(plan))
    shown(run)
    to_csv(analysed(run))
    assert len(hashed) == len(set(hashed)) == FEW


def test_a_changed_copy_has_a_key_of_its_own() -> None:
    case = many_cases(1).cases[0]
    other = case.model_copy(update={"nodes": 4})
    assert other.key != case.key
    assert other.key == Case.model_validate(other.model_dump()).key
    assert case == Case.model_validate(case.model_dump()), "a kept key is no part of a case"
