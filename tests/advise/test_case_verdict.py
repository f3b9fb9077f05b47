"""Does the verdict blame the network only where it is the network?"""

from dataclasses import replace
from pathlib import Path

import pytest

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.trial_findings import findings
from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.messages.vocabulary import CounterKind
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.found import Found
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import (
    ErrorKind,
    LinkFacts,
    NodeUse,
    Record,
    Status,
    TrialError,
)
from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    CommandMetric,
    CommandWorkload,
    TrainWorkload,
    Workload,
)

TRAIN = TrainWorkload(kind="train")
COLLECTIVES = CollectivesWorkload(kind="collectives")
SLOW = Network(name="slow", rate_gbps=0.2)
UNSHAPED = Network(name="reference")


def a_case(workload: Workload, network: Network | None, device: str = "cpu") -> Case:
    return Case(
        workload=workload,
        network=network,
        nodes=1 if network is None else 2,
        ranks_per_node=1,
        device=device,
        backend="gloo",
        environment={},
    )


def records_of(
    case: Case,
    metrics: list[dict[str, float]],
    *,
    ceiling_gbps: float | None = 20.0,
    busy_ratio: float = 0.5,
    system_s: float = 1.0,
    foreign_ratio: float | None = None,
    eight_streams_gbps: float | None = None,
    counted_by: CounterKind | None = None,
) -> list[Record]:
    """One record a launch and block."""
    node = NodeUse(
        node=0,
        elapsed_s=10.0,
        cores_count=1,
        cpu_user_s=1.0,
        cpu_system_s=system_s,
        cpu_softirq_s=0.0,
        cpu_busy_ratio=busy_ratio,
        foreign_busy_ratio=foreign_ratio,
        counted_by=counted_by,
    )
    records = [
        Record(
            record_id=f"b{block}.{case.key}.t0",
            case_key=case.key,
            workload=case.workload.name,
            network=case.network_name,
            shape=case.shape,
            launch_id=f"b{block}.{case.key}",
            block=block,
            trial=0,
            position=block % 2,
            started_unix_s=block,
            ended_unix_s=block + 1,
            status=Status.OK,
            metrics=values,
            nodes=(node,),
            link=None
            if ceiling_gbps is None
            else LinkFacts(
                ceiling_gbps=ceiling_gbps,
                eight_streams_gbps=eight_streams_gbps,
                round_trip_s=5e-5,
            ),
        )
        for block, values in enumerate(metrics)
    ]
    return [r.model_copy(update={"findings": findings(case, r)}) for r in records]


def a_run(*parts: tuple[Case, list[Record]]) -> RunSummary:
    plan = Plan(
        experiment_name="made-up",
        seed=0,
        cases=tuple(case for case, _ in parts),
        launches=(),
        expected_s=0,
    )
    return summarise_run(
        folder=Path("nowhere"),
        plan=plan,
        records=[record for _, records in parts for record in records],
        experiment_yaml="",
        environments={},
    )


def steps(share: float, *, launches: int = 5, spread: float = 0.0) -> list[dict[str, float]]:
    """Trainings that lose this share of a step of 1 s to the network, around it by `spread`."""
    shares = [share + spread * (launch - (launches - 1) / 2) for launch in range(launches)]
    return [
        {
            "step_time_s": 1.0,
            "step_without_communication_s": 1 - s,
            "network_cost_s": s,
            "network_share_ratio": s,
            "tokens_per_s": 100.0 + launch,
            "wire_bytes": s * 0.19e9 / 8,
        }
        for launch, s in enumerate(shares)
    ]


def judged(network: Network, metrics: list[dict[str, float]], **more: object) -> Verdict:
    device, workload = str(more.pop("device", "cpu")), more.pop("workload", TRAIN)
    case = a_case(workload, network, device)
    run = a_run((case, records_of(case, metrics, **more)))
    return verdict(run.cases[0], run)


def test_a_full_link_and_a_high_share_are_network_bound() -> None:
    found = judged(SLOW, steps(0.81))
    assert found.bound is Bound.NETWORK
    assert found.sentence.startswith("network-bound: 81 % of each step waits for the network; ")
    assert "770 ms at 200 Mbit/s, 95 % of the 810 ms" in found.sentence
    assert "unshaped, one TCP stream carries at least 20 Gbit/s" in found.evidence


def test_the_collectives_on_the_same_network_say_how_full_the_link_is() -> None:
    train, beside = a_case(TRAIN, SLOW), a_case(COLLECTIVES, SLOW)
    elsewhere = a_case(COLLECTIVES, UNSHAPED)
    run = a_run(
        (train, records_of(train, steps(0.81))),
        (beside, records_of(beside, [{"line_share_ratio": 0.96}] * 5)),
        (elsewhere, records_of(elsewhere, [{"line_share_ratio": 0.1}] * 5)),
    )
    sentence = verdict(run.cases[0], run).sentence
    assert sentence == (
        "network-bound: 81 % of each step waits for the network; "
        "the link runs at 96 % of its 200 Mbit/s in the largest collective"
    )
    assert verdict(run.cases[1], run).bound is Bound.NETWORK


@pytest.mark.parametrize("share", [-0.01, 0.0, 0.1, 0.29])
def test_a_small_share_is_compute_bound(share: float) -> None:
    assert judged(SLOW, steps(share)).bound is Bound.COMPUTE


def test_an_interval_across_the_threshold_is_unknown() -> None:
    assert judged(SLOW, steps(0.31, spread=0.02)).bound is Bound.UNKNOWN
    assert judged(SLOW, steps(0.5, spread=0.02)).bound is Bound.NETWORK


def test_few_launches_decide_by_the_point_and_say_so() -> None:
    found = judged(SLOW, steps(0.5, launches=1))
    assert found.bound is Bound.NETWORK
    assert found.sentence.endswith("from only 1 launch")
    assert found.is_slower_than_one_node is None


@pytest.mark.parametrize(
    ("network", "more", "words"),
    [
        (UNSHAPED, {}, "the link is unshaped"),
        (SLOW, {"ceiling_gbps": 0.39}, "less than twice the 200 Mbit/s"),
        (SLOW, {"busy_ratio": 0.95, "device": "cuda"}, "no room left for its network stack"),
    ],
)
def test_the_host_is_blamed_where_it_is_the_limit(
    network: Network, more: dict[str, object], words: str
) -> None:
    found = judged(network, steps(0.6), **more)
    assert found.bound is Bound.HOST
    assert words in found.sentence


FOUND = Network(name="fabric", found=Found(interface="ens5", nominal_gbps=100))


@pytest.mark.parametrize(
    ("more", "bound", "words"),
    [
        ({"ceiling_gbps": None}, Bound.UNKNOWN, "over this network was not measured"),
        ({"eight_streams_gbps": 40.0}, Bound.UNKNOWN, "at 40 Gbit/s of eight plain TCP streams"),
        ({"ceiling_gbps": 0.15, "eight_streams_gbps": 0.2}, Bound.NETWORK, "of eight plain TCP"),
        ({"ceiling_gbps": 0.2}, Bound.NETWORK, "at 200 Mbit/s of one plain TCP stream"),
        ({"busy_ratio": 0.95, "device": "cuda"}, Bound.HOST, "no room left"),
    ],
)
def test_a_network_that_was_found_is_held_against_what_streams_carried(
    more: dict[str, object], bound: Bound, words: str
) -> None:
    """It has no rate that we set, for which nobody is to blame, and 100 Gbit/s only on paper."""
    found = judged(FOUND, steps(0.6), **more)
    assert found.bound is bound
    assert words in found.sentence
    assert "unshaped" not in " ".join((found.sentence, *found.evidence))


@pytest.mark.parametrize(
    ("interfaces", "nominal_gbps", "words"),
    [
        ("ens5", 100, ": at least 40 % of the 100 Gbit/s of its data sheet"),
        (("ens5", "ens6"), 100, ": at least 20 % of the 200 Gbit/s of its data sheet"),
        ("ens5", None, ""),
    ],
)
def test_the_streams_share_of_a_rate_on_paper_is_shown_and_decides_nothing(
    interfaces: str | tuple[str, ...], nominal_gbps: float | None, words: str
) -> None:
    network = Network(name="fabric", found=Found(interface=interfaces, nominal_gbps=nominal_gbps))
    found = judged(network, steps(0.6), ceiling_gbps=20.0, eight_streams_gbps=40.0)
    one = "over this network, one TCP stream carries at least 20 Gbit/s"
    streams = f"{one}, eight at least 40 Gbit/s"
    assert streams + words in found.evidence
    bare = judged(FOUND, steps(0.6), ceiling_gbps=20.0, eight_streams_gbps=40.0)
    assert (found.bound, found.sentence) == (bare.bound, bare.sentence)


def test_eight_streams_that_were_not_needed_are_not_called_unknown() -> None:
    """Nothing rests on them: the verdict is what it is with them."""
    without = judged(SLOW, steps(0.81), ceiling_gbps=20.0)
    both = judged(SLOW, steps(0.81), ceiling_gbps=20.0, eight_streams_gbps=60.0)
    assert (without.bound, without.sentence) == (both.bound, both.sentence)
    said = " ".join((without.sentence, *without.evidence))
    assert "unshaped, one TCP stream carries at least 20 Gbit/s" in said
    assert not [word for word in ("unknown", "not measured", "eight") if word in said]


def test_collectives_tell_how_full_a_network_is_that_was_found() -> None:
    for rate_gbps, bound in ((18.0, Bound.NETWORK), (9.0, Bound.UNKNOWN)):
        found = judged(
            FOUND,
            [{"link_rate_gbps": rate_gbps}] * 5,
            workload=COLLECTIVES,
            ceiling_gbps=8.0,
            eight_streams_gbps=20.0,
        )
        assert found.bound is bound
        assert "of the 20 Gbit/s of eight plain TCP streams" in found.sentence


def test_what_rests_on_a_counter_that_misses_bytes_says_so() -> None:
    streams = {"ceiling_gbps": 0.2, "counted_by": CounterKind.INTERFACE}
    found = judged(FOUND, steps(0.6), **streams)
    assert "by counters of interfaces, which may miss 4.4 % of the bytes" in found.sentence
    streams["counted_by"] = CounterKind.QUEUE
    assert "may miss" not in judged(FOUND, steps(0.6), **streams).sentence


def test_on_cpus_saturated_cores_count_only_where_the_link_is_not_full() -> None:
    half_empty = [values | {"wire_bytes": values["wire_bytes"] / 3} for values in steps(0.6)]
    found = judged(SLOW, half_empty, system_s=6.0)
    assert found.bound is Bound.HOST
    assert "no room left for its network stack" in found.sentence
    assert judged(SLOW, steps(0.6), system_s=6.0).bound is Bound.NETWORK


def test_cores_that_compute_do_not_make_the_host_the_limit() -> None:
    assert judged(SLOW, steps(0.6), busy_ratio=0.99).bound is Bound.NETWORK


def test_a_half_empty_link_and_an_idle_host_are_unknown() -> None:
    slow_library = [values | {"wire_bytes": values["wire_bytes"] / 3} for values in steps(0.6)]
    found = judged(SLOW, slow_library)
    assert found.bound is Bound.UNKNOWN
    assert "latency or the library's settings are left" in found.sentence


def test_collectives_that_fill_the_link_do_not_vouch_for_a_training_that_does_not() -> None:
    train, beside = a_case(TRAIN, SLOW), a_case(COLLECTIVES, SLOW)
    small_messages = [values | {"wire_bytes": values["wire_bytes"] / 3} for values in steps(0.6)]
    run = a_run(
        (train, records_of(train, small_messages)),
        (beside, records_of(beside, [{"line_share_ratio": 0.96}] * 5)),
    )
    found = verdict(run.cases[0], run)
    assert found.bound is Bound.UNKNOWN
    assert "a step's bytes take 190 ms at 200 Mbit/s, 32 % of the 600 ms" in found.sentence


def test_an_unmeasured_ceiling_is_said() -> None:
    found = judged(SLOW, steps(0.6), ceiling_gbps=None)
    assert found.bound is Bound.NETWORK
    assert "what this host carries unshaped was not measured" in found.evidence


def _with_one_node(tokens_alone: float, tokens: float) -> Verdict:
    alone, together = a_case(TRAIN, None), a_case(TRAIN, SLOW)
    run = a_run(
        (alone, records_of(alone, [{"tokens_per_s": tokens_alone + i} for i in range(5)])),
        (
            together,
            records_of(
                together, [s | {"tokens_per_s": tokens + i} for i, s in enumerate(steps(0.8))]
            ),
        ),
    )
    return verdict(run.cases[1], run)


def test_two_nodes_may_be_slower_than_one() -> None:
    slower = _with_one_node(200.0, 90.0)
    assert slower.is_slower_than_one_node is True
    assert "two nodes are slower than one" in slower.sentence
    assert _with_one_node(100.0, 190.0).is_slower_than_one_node is False
    assert _with_one_node(100.0, 100.0).is_slower_than_one_node is None


def test_without_the_step_without_communication_scaling_stands_in() -> None:
    alone, together = a_case(TRAIN, None), a_case(TRAIN, SLOW)
    run = a_run(
        (alone, records_of(alone, [{"tokens_per_s": 100.0 + i} for i in range(5)])),
        (together, records_of(together, [{"tokens_per_s": 80.0 + i} for i in range(5)])),
    )
    found = verdict(run.cases[1], run)
    assert found.bound is Bound.UNKNOWN
    assert "a rank gives 60 %" in found.sentence
    assert "less than at 1x1" in found.sentence


def test_one_node_has_no_network() -> None:
    case = a_case(TRAIN, None)
    run = a_run((case, records_of(case, steps(0.0))))
    assert verdict(run.cases[0], run).bound is Bound.COMPUTE


def test_failures_and_empty_cases_are_unknown() -> None:
    case = a_case(TRAIN, SLOW)
    empty = a_run((case, []))
    assert verdict(empty.cases[0], empty).sentence == "unknown: not measured yet"
    failed: CaseSummary = replace(empty.cases[0], num_failed=3)
    assert verdict(failed, empty).sentence == "unknown: all 3 trials failed"
    once = replace(failed, num_failed=1)
    assert verdict(once, empty).sentence == "unknown: its only trial failed"


def test_a_case_that_only_failed_says_who_did_and_where() -> None:
    case = a_case(TRAIN, SLOW)
    error = TrialError(
        kind=ErrorKind.CRASHED,
        message="rank 1 crashed at train.py:9 in step: ValueError: no such key\nmore",
        rank=1,
        frame="train.py:9 in step",
    )
    good = records_of(case, steps(0.0, launches=3))
    failed = [r.model_copy(update={"status": Status.FAILED, "error": error}) for r in good]
    run = a_run((case, failed))
    assert verdict(run.cases[0], run).sentence == (
        "unknown: all 3 trials failed alike: rank 1 crashed at train.py:9 in step: ValueError: "
        "no such key"
    )
    other = error.model_copy(update={"rank": 0})
    run = a_run((case, [*failed[:2], failed[2].model_copy(update={"error": other})]))
    assert "all 3 trials failed, the first: rank 1" in verdict(run.cases[0], run).sentence


@pytest.mark.parametrize(
    ("printed", "told"),
    [("\nhello\nbye", "its last line: bye"), ("", "it printed no line")],
)
def test_a_verdict_announces_no_lines_that_it_leaves_out(printed: str, told: str) -> None:
    """Of a message that goes on below its first line it says what the error's headline says."""
    case = a_case(TRAIN, SLOW)
    message = f"no step_time_s in what it printed; its last lines:{printed}"
    error = TrialError(kind=ErrorKind.REFUSED, message=message)
    (good,) = records_of(case, steps(0.0, launches=1))
    run = a_run((case, [good.model_copy(update={"status": Status.FAILED, "error": error})]))
    assert verdict(run.cases[0], run).sentence == (
        f"unknown: its only trial failed: no step_time_s in what it printed; {told}"
    )


def _command_on_two_networks(times_slower: float) -> tuple[Verdict, Verdict]:
    """A user's command whose step takes so many times as long on the slow network."""
    command = CommandWorkload(
        kind="command",
        command=("train.py",),
        metrics=(CommandMetric(name="step_time_s", json_key="step_time_s"),),
    )
    slow, fast = a_case(command, SLOW), a_case(command, UNSHAPED)
    times = [1.0 + 0.001 * launch for launch in range(5)]
    run = a_run(
        (slow, records_of(slow, [{"step_time_s": times_slower * t} for t in times])),
        (fast, records_of(fast, [{"step_time_s": t} for t in times])),
    )
    return verdict(run.cases[0], run), verdict(run.cases[1], run)


def test_a_command_is_judged_against_the_fastest_network() -> None:
    slow, reference = _command_on_two_networks(4.0)
    assert slow.bound is Bound.NETWORK
    assert "its step time is 4 times that on reference: at least 75 %" in slow.sentence
    assert reference.bound is Bound.UNKNOWN


def test_a_command_that_loses_little_may_still_wait_for_both_networks() -> None:
    slow, _ = _command_on_two_networks(1.1)
    assert slow.bound is Bound.UNKNOWN
    assert "this network costs 9 % more, and what both cost is unknown" in slow.sentence


@pytest.mark.parametrize(
    ("share", "bound", "words"),
    [
        (0.97, Bound.NETWORK, "network-bound: the link is 97 % full while the steps run"),
        (0.5, Bound.UNKNOWN, "a faster link saves at most that"),
        (0.02, Bound.UNKNOWN, "an unshaped network beside it would tell (`run --add-reference`)"),
    ],
)
def test_a_command_is_judged_by_how_full_the_link_is_while_its_steps_run(
    share: float, bound: Bound, words: str
) -> None:
    command = CommandWorkload(
        kind="command",
        command=("train.py",),
        metrics=(CommandMetric(name="step_time_s", json_key="step_time_s"),),
    )
    case = a_case(command, SLOW)
    rate_gbps = SLOW.node_rate_gbps or 0.0
    values = {
        "step_time_s": 1.0,
        "wire_bytes": share * rate_gbps * 1e9 / 8,
        "link_rate_gbps": share * rate_gbps,
        "line_share_ratio": share,
    }
    run = a_run((case, records_of(case, [values] * 5)))
    found = verdict(run.cases[0], run)
    assert found.bound is bound
    assert words in found.sentence
    assert f"{100 * share:.0f} % full" in " ".join(found.evidence)
    beside = a_case(command, UNSHAPED)
    both = a_run(
        (case, records_of(case, [values] * 5)),
        (beside, records_of(beside, [{"step_time_s": 0.99}] * 5)),
    )
    assert verdict(both.cases[0], both).bound is bound
    assert "--add-reference" not in verdict(both.cases[0], both).sentence


def test_a_full_link_beside_a_noisy_reference_says_what_was_lost_against_it() -> None:
    command = CommandWorkload(
        kind="command",
        command=("train.py",),
        metrics=(CommandMetric(name="step_time_s", json_key="step_time_s"),),
    )
    slow, fast = a_case(command, SLOW), a_case(command, UNSHAPED)
    full = {"line_share_ratio": 0.94, "wire_bytes": 1e6, "link_rate_gbps": 0.1}
    run = a_run(
        (slow, records_of(slow, [full | {"step_time_s": 4.0}] * 3)),
        (fast, records_of(fast, [{"step_time_s": time_s} for time_s in (0.1, 5.0, 1.0)])),
    )
    found = verdict(run.cases[0], run)
    assert found.bound is Bound.NETWORK
    assert "the link is 94 % full while the steps run" in found.sentence
    assert "times that on reference: this network costs" in found.sentence


def test_how_many_launches_would_tell_is_said() -> None:
    assert "launches would tell" in judged(SLOW, steps(0.33, spread=0.05)).sentence


@pytest.mark.parametrize("foreign_ratio", [None, 0.05, 0.91])
@pytest.mark.parametrize("busy_ratio", [0.5, 1.0])
@pytest.mark.parametrize("workload", [TRAIN, COLLECTIVES])
def test_cores_that_others_used_say_nothing_of_the_host(
    workload: Workload, busy_ratio: float, foreign_ratio: float | None
) -> None:
    half_empty = [
        values | {"wire_bytes": values["wire_bytes"] / 3, "line_share_ratio": 0.5}
        for values in steps(0.6)
    ]
    case = a_case(workload, SLOW, "cuda")
    records = records_of(case, half_empty, busy_ratio=busy_ratio, foreign_ratio=foreign_ratio)
    run = a_run((case, records))
    found = verdict(run.cases[0], run)
    others = "other programs used 91 % of the cores in 5 of 5 trials"
    is_loaded = foreign_ratio == 0.91
    assert (others in found.evidence) is is_loaded
    assert (f"{others}: run again on a quiet machine" in found.sentence) is is_loaded
    assert (found.bound is Bound.HOST) is (busy_ratio == 1.0 and not is_loaded)
    if is_loaded:
        assert "host is not at its limit" not in found.sentence
        assert "no room left" not in found.sentence


def test_a_few_trials_with_other_programs_change_no_verdict() -> None:
    case = a_case(TRAIN, SLOW)
    loaded = records_of(case, steps(0.81), foreign_ratio=0.5)
    quiet = records_of(case, steps(0.81))
    run = a_run((case, [*loaded[:2], *quiet[2:]]))
    assert not [line for line in verdict(run.cases[0], run).evidence if "other programs" in line]
    run = a_run((case, [*loaded[:3], *quiet[3:]]))
    found = verdict(run.cases[0], run)
    assert found.bound is Bound.NETWORK
    assert found.evidence[-1] == "other programs used 50 % of the cores in 3 of 5 trials"


def noisy(*shares: float, step_s: float = 1.0) -> list[dict[str, float]]:
    """A training of which each launch says another share of its step."""
    return [
        {
            "step_time_s": step_s,
            "step_without_communication_s": step_s * (1 - share),
            "network_cost_s": step_s * share,
            "network_share_ratio": share,
        }
        for share in shares
    ]


@pytest.mark.parametrize("shares", [(0.26, -0.15), (0.26, -0.15, 0.05, 0.04, 0.03), (-0.03, 0.02)])
def test_launches_that_disagree_in_sign_tell_nothing(shares: tuple[float, ...]) -> None:
    found = judged(SLOW, noisy(*shares))
    assert found.bound is Bound.UNKNOWN
    assert "launches disagree whether the network costs anything" in found.sentence
    assert "run 5 launches or more, on a quiet machine" in found.sentence


def test_a_share_next_to_none_on_both_sides_of_zero_is_no_disagreement() -> None:
    assert judged(SLOW, noisy(0.01, -0.01, 0.02)).bound is Bound.COMPUTE


def test_the_share_is_the_cost_over_the_step_that_stand_in_the_table() -> None:
    """Launches of a fast and of a slow moment: the mean of their own shares is another figure."""
    metrics = [*noisy(0.26, step_s=0.04), *noisy(0.2, step_s=0.10), *noisy(0.1, step_s=0.07)]
    case = a_case(TRAIN, SLOW)
    run = a_run((case, records_of(case, metrics)))
    estimates = run.cases[0].estimates
    cost, step = estimates["network_cost_s"], estimates["step_time_s"]
    share = estimates["network_share_ratio"]
    assert share.value == pytest.approx(cost.value / step.value, rel=1e-12)
    assert share.value != pytest.approx(0.56 / 3, rel=0.01)
    assert f"{100 * share.value:.0f} %" in verdict(run.cases[0], run).sentence


def test_no_share_is_said_to_reach_beyond_the_step() -> None:
    found = judged(SLOW, noisy(0.95, 0.75, 0.9))
    assert "87 % (61 to 100 %, cut at 100 %)" in found.sentence
    assert any(
        "cut at 100 %: no network costs more than the step" in each for each in found.evidence
    )


def test_an_interval_across_the_threshold_says_what_to_do() -> None:
    sentence = judged(SLOW, noisy(0.1, 0.9, 0.2)).sentence
    assert sentence.startswith("unknown: 40 % ")
    assert "on both sides of 30 %: " in sentence
    assert "launches" in sentence


@pytest.mark.parametrize("launches", [1, 2])
def test_few_launches_in_which_the_network_saves_time_are_no_verdict(launches: int) -> None:
    found = judged(FOUND, steps(-0.4, launches=launches))
    assert found.bound is Bound.UNKNOWN
    words = f"not known from {launches} launch{'' if launches == 1 else 'es'}: "
    assert words in found.sentence
    assert "−40 % of a step" in found.sentence
    assert "less than 1 %" not in found.sentence


def test_a_share_just_below_none_stays_compute_bound() -> None:
    assert judged(FOUND, steps(-0.03, launches=2)).bound is Bound.COMPUTE


def test_launches_that_all_save_time_and_scatter_widely_are_no_verdict() -> None:
    found = judged(FOUND, steps(-0.4, launches=3, spread=0.1))
    assert found.bound is Bound.UNKNOWN
    assert "not known from 3 launches" in found.sentence
