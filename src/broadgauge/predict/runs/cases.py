"""What does a stored run tell a prediction? Its trainings, its own collectives, its machine.

Profiler traces, once they are kept in a run folder, come in here too: as times of single kernels
and collectives in the place of a step's parts (`RunCase.curves`, `RunCase.without_s`).
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from broadgauge.predict.case import CollectiveCurve
from broadgauge.predict.kinds import NotPredicted, in_predict, training_of
from broadgauge.predict.system.paths import path_curves
from broadgauge.results.model import CaseSummary, CollectiveSummary, RunSummary
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Case, case_name
from broadgauge.specs.errors import InputError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.machines.system import CollectiveTime, PathTimes, Timing
from broadgauge.specs.networks.network import NodePath, PathKind
from broadgauge.specs.records.record import Environment
from broadgauge.specs.selector import CaseSelector
from broadgauge.specs.workloads.workload import TrainWorkload

STEP, WITHOUT = "step_time_s", "step_without_communication_s"
SELECTING = ("workload", "network", "shape", "backend")
MOST_LISTED = 6
"""Other trainings that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCase:
    """One training of a run, as it was measured."""

    summary: CaseSummary
    case: Case
    workload: TrainWorkload
    step_s: Estimate
    without_s: Estimate | None
    """The same step with communication off; None: not recorded, or there is one rank."""
    wire_bytes: float | None
    """A step, busiest node and direction, by counters."""
    device_name: str
    """As the driver or the kernel has it; empty: not recorded."""
    curves: tuple[CollectiveCurve, ...]
    """The run's own collectives on this network, among these ranks."""


def train_cases(run: RunSummary) -> tuple[RunCase, ...]:
    """The trainings of the experiment itself that succeeded."""
    return tuple(
        _run_case(run, summary, training)
        for summary in run.candidates
        if (training := training_of(summary.case.workload)) and STEP in summary.estimates
    )


def _run_case(run: RunSummary, summary: CaseSummary, workload: TrainWorkload) -> RunCase:
    wire = summary.estimates.get("wire_bytes")
    return RunCase(
        summary=summary,
        case=summary.case,
        workload=workload,
        step_s=summary.estimates[STEP],
        without_s=summary.estimates.get(WITHOUT),
        wire_bytes=None if wire is None else wire.value,
        device_name=device_name(run, summary),
        curves=own_curves(run, summary.case),
    )


def device_name(run: RunSummary, summary: CaseSummary) -> str:
    """What computed?"""
    environment = _environment(run, summary)
    if environment is None:
        return ""
    if summary.case.device == "cuda":
        return environment.gpus[0].name if environment.gpus else ""
    return environment.cpu or ""


def _environment(run: RunSummary, summary: CaseSummary) -> Environment | None:
    names = [record.environment for record in summary.good if record.environment is not None]
    return run.environments.get(names[-1]) if names else None


def own_curves(run: RunSummary, case: Case) -> tuple[CollectiveCurve, ...]:
    """The collectives that the run measured on this case's network, among the same ranks."""
    for summary in run.candidates:
        other = summary.case
        same = (other.network, other.shape, other.backend) == (
            case.network,
            case.shape,
            case.backend,
        )
        if same and summary.collectives:
            return path_curves(_path(summary))
    return ()


def run_paths(run: RunSummary) -> tuple[PathTimes, ...]:
    """The collectives of every network and path of a run, in a system file's form."""
    return tuple(
        _path(summary)
        for summary in run.candidates
        if summary.collectives and summary.case.network is not None
    )


def _path(summary: CaseSummary) -> PathTimes:
    case = summary.case
    link, round_trip = case.link, summary.round_trip_s
    is_plain = link is not None and not link.needs_netem and not link.slow_pairs
    rate_gbps = None if link is None else link.node_rate_gbps
    return PathTimes(
        name="one-node" if case.network is None else case.network.name,
        path=_path_kind(case),
        backend=case.backend,
        nodes=case.nodes,
        ranks_per_node=case.ranks_per_node,
        mtu_bytes=link.mtu_bytes if link is not None and is_plain else None,
        rate_gbps=rate_gbps,
        round_trip_s=None if round_trip is None else round_trip.value,
        collectives=tuple(_times(summary.collectives)),
    )


def _path_kind(case: Case) -> PathKind | Literal["emulated", "found"]:
    if isinstance(case.network, NodePath):
        return case.network.path
    return "found" if case.link is not None and case.link.face is not None else "emulated"


def _times(rows: Sequence[CollectiveSummary]) -> Iterator[CollectiveTime]:
    """In float32 where there are several types; one row a size."""
    for row in rows:
        if row.dtype != rows[0].dtype or row.engine != rows[0].engine:
            continue
        value = row.time_s.value
        low, high = row.time_s.low or value, row.time_s.high or value
        timing = Timing(
            median_s=value, low_s=max(low, 1e-9), high_s=high, repetitions=row.time_s.trials
        )
        if row.op in ("all_reduce", "all_gather", "reduce_scatter"):
            yield CollectiveTime.model_validate(
                {"op": row.op, "size_bytes": row.size_bytes, "time": timing}
            )


def pick_case(run: RunSummary, wanted: str | None) -> RunCase:
    """The training that is asked about: the one that `wanted` selects, or the only one.

    Of the networks of one training it is the slowest, which tells most of the network. Raises
    InputError.
    """
    several = _of_several_ranks(_selected(run, wanted))
    kinds = {(each.case.workload.name, each.case.shape, each.case.backend) for each in several}
    if len(kinds) > 1:
        raise InputError(
            f"{run.folder.name} holds {len(several)} trainings: say which",
            hint="--case workload=…,shape=…: " + _listed(several),
        )
    return max(several, key=lambda each: each.step_s.value)


def picked_words(run: RunSummary, wanted: str | None, picked: RunCase) -> str | None:
    """Which of several trainings was picked, and how is another named? None: it was the only one.

    Raises InputError.
    """
    selected = _selected(run, wanted)
    others = [each for each in selected if case_name(each.case) != case_name(picked.case)]
    if not others:
        return None
    several = len(_of_several_ranks(selected)) > 1
    why = "on its slowest network" if several else "the one of several ranks"
    every = train_cases(run)
    names = [f"`{_shortest_selector(each, every)}`" for each in others]
    return (
        f"of {len(selected)} trainings this is {picked.case.label}, {why}; --case takes another: "
        f"{_some(names)}"
    )


def _selected(run: RunSummary, wanted: str | None) -> tuple[RunCase, ...]:
    """Raises InputError: none."""
    cases = train_cases(run)
    if not cases:
        hint = "`broadgauge sensitivity` asks any workload by running it at several rates"
        raise InputError(_no_training(run), hint=hint)
    if wanted is None:
        return cases
    selector = parse_selector(wanted, cases)
    found = tuple(each for each in cases if selector.matches(each.case))
    if not found:
        raise InputError(f"no training of {run.folder.name} is `{wanted}`", hint=_known(run))
    return found


def _of_several_ranks(cases: tuple[RunCase, ...]) -> tuple[RunCase, ...]:
    """Those that send something; all of them where none does."""
    return tuple(each for each in cases if each.case.world_size > 1) or cases


def _shortest_selector(one: RunCase, cases: Sequence[RunCase]) -> str:
    """As few keys as name this one alone."""
    keys = ("shape", "network", "workload", "backend")
    mine = _names(one.case)
    for number in range(1, len(keys)):
        for some in itertools.combinations(keys, number):
            alike = [
                each for each in cases if all(_names(each.case)[key] == mine[key] for key in some)
            ]
            if len(alike) == 1:
                return ",".join(f"{key}={mine[key]}" for key in some)
    return ",".join(f"{key}={mine[key]}" for key in keys)


def _no_training(run: RunSummary) -> str:
    held = [in_predict(each.case.workload) for each in run.candidates]
    reasons = [each.of_run for each in held if isinstance(each, NotPredicted) and each.of_run]
    if reasons:
        message = reasons[0]
    elif any(training_of(each.case.workload) for each in run.candidates):
        message = "none of its trainings succeeded"
    else:
        message = "it holds no training"
    return f"{run.folder.name} can't be asked: {message}"


def parse_selector(text: str, cases: Sequence[RunCase]) -> CaseSelector:
    """`network=pod-like,shape=2x1`. Raises InputError."""
    keys: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not value or key not in SELECTING:
            hint = did_you_mean(key, SELECTING)
            raise InputError(f"--case takes KEY=VALUE, not `{part.strip()}`", hint=hint)
        values = _values(key, cases)
        if value not in values and not any(sign in value for sign in "*?"):
            raise InputError(f"--case: no training has {key} `{value}`", hint=_near(value, values))
        keys[key] = value
    return CaseSelector.model_validate(keys)


def _values(key: str, cases: Sequence[RunCase]) -> list[str]:
    found: dict[str, None] = {}
    for each in cases:
        found[_names(each.case)[key]] = None
    return list(found)


def _names(case: Case) -> dict[str, str]:
    """What it is selected by: SELECTING."""
    return {
        "workload": case.workload.name,
        "network": case.plain_network_name,
        "shape": case.shape,
        "backend": case.backend,
    }


def _near(value: str, values: Sequence[str]) -> str:
    return did_you_mean(value, values) or f"there are {', '.join(values)}"


def _known(run: RunSummary) -> str:
    return "there are " + _listed(train_cases(run))


def _listed(cases: Sequence[RunCase]) -> str:
    return _some([each.case.label for each in cases])


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
