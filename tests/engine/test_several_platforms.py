"""Proves that a platform can be an arm: one run interleaves the cases of several platforms."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.engine.fake_platform import FakeClock, FakePlatform, Moment, Script, services
from tests.engine.fake_script import an_environment, ideal
from tests.engine.making import TRAIN, a_machine, an_experiment, devices_of, make_folder

from broadgauge.analysis.analyse import analysed
from broadgauge.engine.events import Event, Noted
from broadgauge.engine.interrupts import Interrupts
from broadgauge.engine.plan import make_plan, without_emulation
from broadgauge.engine.run import run
from broadgauge.engine.several_platforms import SeveralPlatforms
from broadgauge.platforms.devices import emulated_devices
from broadgauge.report.export.run_tables import table_of
from broadgauge.report.page.top import comparisons
from broadgauge.report.terminal.printing import print_run
from broadgauge.results.comparing.compare_cases import against_reference, between_platforms
from broadgauge.results.comparing.hypotheses import evaluate
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.run_path import read_summary
from broadgauge.specs.case import counterpart_name
from broadgauge.specs.errors import ExperimentError, PlatformError
from broadgauge.specs.plan import Plan
from broadgauge.specs.text.reading import read_experiment

BOTH: dict[str, Any] = {
    "platform": ["emulated", "local"],
    "cluster": {"shapes": ["1x1", "1x2"], "device": "cpu"},
    "workloads": [TRAIN],
    "launches": 6,
}
SLOWER = 1.3
"""Steps on the local platform against the emulated one."""


def planned(**changes: Any) -> Plan:
    return make_plan(an_experiment(**BOTH | changes), devices_of(a_machine()))


def slower_on_local(moment: Moment) -> float:
    return ideal(moment) * (SLOWER if moment.case.platform == "local" else 1.0)


def fakes(clock: FakeClock, **script: Any) -> dict[Any, FakePlatform]:
    """Two platforms whose environments differ, as two platforms' do."""
    return {
        kind: FakePlatform(
            clock,
            Script(
                time_s=slower_on_local,
                environment=lambda _, kind=kind: an_environment(platform=kind, kernel=f"of {kind}"),
                **script,
            ),
        )
        for kind in ("emulated", "local")
    }


def run_both(folder: RunFolder, **script: Any) -> tuple[dict[Any, FakePlatform], Sequence[Event]]:
    clock = FakeClock()
    platforms, events = fakes(clock, **script), list[Event]()
    run(folder.plan, SeveralPlatforms(platforms), folder, services(clock, events.append))
    return platforms, events


def test_every_case_is_there_on_each_platform_and_its_key_says_which() -> None:
    plan = planned()
    alone = make_plan(an_experiment(**BOTH | {"platform": "local"}), devices_of(a_machine()))
    assert [case.label for case in plan.cases] == [
        f"train {shape} one node on {platform}"
        for platform in ("emulated", "local")
        for shape in ("1x1", "1x2")
    ]
    assert len({case.key for case in plan.cases}) == 4
    assert [case.platform for case in alone.cases] == [None, None]
    assert not {case.key for case in alone.cases} & {case.key for case in plan.cases}
    assert "platform" not in alone.cases[0].model_dump(exclude_defaults=True)


def test_counterparts_are_neighbours_in_every_block_and_take_turns() -> None:
    plan = planned()
    for block in range(6):
        order = [
            plan.case(trial.case_key)
            for launch in plan.launches
            if launch.block == block
            for trial in launch.trials
        ]
        assert len(order) == 4
        pairs = [(order[i], order[i + 1]) for i in (0, 2)]
        assert all(counterpart_name(a) == counterpart_name(b) for a, b in pairs)
        first = "emulated" if block % 2 == 0 else "local"
        assert {a.platform for a, _ in pairs} == {first}


def test_a_launch_is_of_one_platform_and_asks_that_one(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, planned())
    platforms, events = run_both(folder)
    assert len(folder.records) == len(folder.plan.launches) == 24
    for kind, platform in platforms.items():
        assert {case.platform for request in platform.requests for case in request.cases} == {kind}
        assert (platform.is_closed, platform.num_alive) == (True, 0)
    assert not [event for event in events if isinstance(event, Noted)], "no environment changed"
    assert [record.block for record in folder.records] == sorted(r.block for r in folder.records)


def test_a_platform_that_changes_in_mid_run_begins_a_new_block(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, planned())
    clock = FakeClock()
    platforms = fakes(clock)
    seen: list[str] = []

    def environment(request: Any) -> Any:
        seen.append(request.launch_id)
        torch = "2.11.0" if len(seen) < 5 else "2.12.0"
        return an_environment(platform="local", torch=torch)

    platforms["local"].script.environment = environment
    events: list[Event] = []
    run(folder.plan, SeveralPlatforms(platforms), folder, services(clock, events.append))
    (noted,) = [event.text for event in events if isinstance(event, Noted)]
    assert noted.endswith("torch: 2.11.0 → 2.12.0")


def test_the_same_case_on_two_platforms_is_compared_in_pairs(tmp_path: Path) -> None:
    hypothesis = {
        "name": "as-fast",
        "statement": "the local platform is as fast",
        "cases": {"platform": "local"},
        "over": {"platform": "emulated"},
        "metric": "step_time_s",
        "at_most": 1.1,
    }
    folder = make_folder(tmp_path, planned(hypotheses=[hypothesis]))
    with folder:
        run_both(folder)
    summary = read_summary(folder.path)
    rows = between_platforms(summary)
    assert [(row.a_label, row.b_label) for row in rows] == [
        (f"train {shape} one node on emulated", f"train {shape} one node on local")
        for shape in ("1x1", "1x2")
    ]
    for row in rows:
        assert row.is_paired
        assert row.comparison is not None
        assert row.comparison.ratio.value == pytest.approx(SLOWER, rel=1e-6)
    assert against_reference(summary) == ()
    table = table_of(analysed(summary))
    column = [each.name for each in table.columns].index("platform")
    assert [row[column] for row in table.rows[:4]] == ["emulated", "local"] * 2
    (asked,) = folder.plan.hypotheses
    assert evaluate(asked, summary).verdict == "refuted"


def test_every_view_compares_the_platforms(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, planned())
    with folder:
        run_both(folder)
    seen = analysed(read_summary(folder.path))
    console = Console(file=io.StringIO(), width=120)
    print_run(seen, console)
    assert isinstance(console.file, io.StringIO)
    for text in (console.file.getvalue(), comparisons(seen.analysis)):
        assert "Against the first platform" in text
        assert "train 1x2 one node on local" in text
        assert f"{SLOWER}×" in text


def test_scaling_is_against_the_smallest_world_of_the_same_platform(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, planned())
    with folder:
        run_both(folder)
    for case in read_summary(folder.path).cases:
        if case.case.shape == "1x2":
            assert case.scaling is not None
            assert case.scaling.reference.platform == case.case.platform


@pytest.mark.parametrize("how", ["refused", "interrupted", "close"])
def test_all_platforms_are_closed_however_it_ends(tmp_path: Path, how: str) -> None:
    folder = make_folder(tmp_path, planned())
    clock, interrupts = FakeClock(), Interrupts()
    platforms = fakes(clock)
    if how == "refused":
        platforms["local"].script.launch_errors = {"b1.l2": PlatformError("no more")}
    elif how == "interrupted":
        platforms["local"].script.on_step = lambda step: (
            interrupts.request(2) if step == "start b1.l2" else None
        )
    else:
        platforms["local"].close = _refuse  # type: ignore[method-assign]
    both = SeveralPlatforms(platforms)
    if how == "interrupted":
        assert run(folder.plan, both, folder, services(clock)).interrupted_by == 2
    else:
        with pytest.raises(PlatformError):
            run(folder.plan, both, folder, services(clock))
    assert platforms["emulated"].is_closed
    assert sum(platform.num_alive for platform in platforms.values()) == 0
    assert folder.records


def _refuse() -> None:
    raise PlatformError("it can't be closed")


def test_shapes_of_several_nodes_run_where_there_are_nodes() -> None:
    plan = planned(cluster={"shapes": ["1x1", "2x1"], "device": "cpu"})
    assert [(case.shape, case.platform) for case in plan.cases] == [
        ("1x1", "emulated"),
        ("2x1", "emulated"),
        ("2x1", "emulated"),
        ("1x1", "local"),
    ]
    assert "shape 2x1 is not run on local: the platform local has 1 node" in plan.notes


def test_without_emulation_the_other_platforms_run_alone() -> None:
    rest = without_emulation(an_experiment(**BOTH), emulated_devices(a_machine()))
    assert rest.platform == "local"
    assert [case.platform for case in make_plan(rest, devices_of(a_machine())).cases] == [None] * 2


@pytest.mark.parametrize(
    ("platform", "said"),
    [
        ("[]", "at least one platform, and each once"),
        ("[local, local]", "at least one platform, and each once"),
        ("[local, slurm]", "slurm"),
        ("[local, emulate]", "did you mean `emulated`?"),
    ],
)
def test_a_list_of_platforms_holds_each_once(platform: str, said: str) -> None:
    text = f"name: x\nplatform: {platform}\nworkloads: [{{kind: train}}]\n"
    with pytest.raises(ExperimentError) as refused:
        read_experiment(text, "x.yaml")
    assert said in str(refused.value)
