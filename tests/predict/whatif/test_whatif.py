"""Does a run answer for other networks, and say itself what it can't answer?"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.making_systems import system
from tests.report.sample_run import POD, REFERENCE, TRAIN, VNIC, Options, sample_run

from broadgauge.catalog.gpus import find_gpu_named, known_gpus
from broadgauge.predict.case import Fabric
from broadgauge.predict.runs.cases import RunCase, pick_case, picked_words, train_cases
from broadgauge.predict.runs.network import CarriedFabric
from broadgauge.predict.whatif.changes import Change, NamedNetwork, WhatIfAnswer
from broadgauge.predict.whatif.whatif import what_if
from broadgauge.results.model import RunSummary
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.workload import CollectivesWorkload, CommandWorkload


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """Computes 0.16 s, sends all gradients after it: steps of 0.72, 0.28 and 0.20 s."""
    return sample_run(tmp_path_factory.mktemp("run"), Options(has_failure=False))


def at(rate_gbps: float | None) -> Change:
    return Change(label="x", network=Network(name="x", rate_gbps=rate_gbps))


def ask(run: RunSummary, change: Change, case: str = "network=pod-like") -> WhatIfAnswer:
    return what_if(run, pick_case(run, case), [change]).answers[0]


@pytest.mark.parametrize("network", ["pod-like", "vnic-like", "reference"])
def test_without_a_change_the_answer_is_the_measured_step(run: RunSummary, network: str) -> None:
    base = pick_case(run, f"network={network}")
    for change in (Change(), Change(network=base.case.network), Change(nodes=2)):
        answer = what_if(run, base, [change]).answers[0]
        assert answer.step_s.value == pytest.approx(base.step_s.value, rel=1e-6)
        assert answer.speedup_ratio == pytest.approx(1, rel=1e-6)
        assert answer.step_s.low <= base.step_s.value <= answer.step_s.high


@pytest.mark.parametrize(
    "own",
    [
        Change(nodes=2),
        Change(network=POD),
        Change(nodes=2, network=POD, strategy="ddp", accumulation=1, gradient_bytes=4.0),
    ],
)
def test_what_is_so_in_the_run_changes_nothing(run: RunSummary, own: Change) -> None:
    base = pick_case(run, "network=pod-like")
    plain, asked = what_if(run, base, [Change(), replace(own, label="own")]).answers
    assert asked == replace(plain, label="own")
    assert asked.is_measured
    more, of_more = what_if(
        run, base, [replace(own, accumulation=4), Change(accumulation=4)]
    ).answers
    assert more == of_more
    assert not more.is_measured


@settings(deadline=None, max_examples=6)
@given(st.lists(st.floats(0.05, 40), min_size=2, max_size=2, unique=True))
def test_more_bandwidth_is_never_slower(run: RunSummary, rates: list[float]) -> None:
    slow, fast = sorted(rates)
    changes = [at(slow), at(fast)]
    answers = what_if(run, pick_case(run, "network=vnic-like"), changes).answers
    assert answers[0].step_s.value >= answers[1].step_s.value * (1 - 1e-9)
    for answer in answers:
        assert answer.step_s.low <= answer.step_s.value <= answer.step_s.high
        assert answer.step_s.value >= answer.compute_s * (1 - 1e-9)


def test_no_network_is_faster_than_the_compute_that_was_measured(run: RunSummary) -> None:
    base = pick_case(run, "network=pod-like")
    assert base.without_s is not None
    answer = ask(run, roce())
    assert answer.step_s.value == pytest.approx(base.without_s.value, rel=0.02)
    assert answer.basis is None


def test_the_runs_other_networks_are_predicted_in_order_and_within_a_quarter(
    run: RunSummary,
) -> None:
    """The made-up run hides nothing of its communication and shares no core with it; what is
    predicted is for a run that does."""
    found = what_if(run, pick_case(run, "network=pod-like"), [Change()])
    assert {check.label for check in found.checks} == {"vnic-like", "reference"}
    assert all(abs(check.error_ratio) < 0.25 for check in found.checks)
    by_label = {check.label: check.predicted_s for check in found.checks}
    assert by_label["reference"] < by_label["vnic-like"] < found.base.step_s.value


def test_an_interval_is_no_narrower_than_the_runs_own_networks_were_missed_by(
    run: RunSummary,
) -> None:
    found = what_if(run, pick_case(run, "network=pod-like"), [Change(), at(3)])
    worst = max(max(1 + each.error_ratio, 1 / (1 + each.error_ratio)) for each in found.checks)
    same, other = (answer.step_s for answer in found.answers)
    assert worst > 1
    assert other.low <= other.value / worst * (1 + 1e-9)
    assert other.high >= other.value * worst * (1 - 1e-9)
    assert same.high / same.value < worst


def test_the_slowest_network_of_the_only_training_is_taken(run: RunSummary) -> None:
    assert pick_case(run, None).case.network == POD


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            None,
            "of 4 trainings this is train 2x1 pod-like, on its slowest network; --case takes "
            "another: `shape=1x1`, `network=vnic-like`, `network=reference`",
        ),
        (
            "network=*-like",
            "of 2 trainings this is train 2x1 pod-like, on its slowest network; --case takes "
            "another: `network=vnic-like`",
        ),
        ("network=pod-like", None),
    ],
)
def test_which_of_several_trainings_is_taken_is_said(
    run: RunSummary, wanted: str | None, words: str | None
) -> None:
    assert picked_words(run, wanted, pick_case(run, wanted)) == words


OTHER = TRAIN.model_copy(update={"name": "other"})


def with_another_training(run: RunSummary) -> RunSummary:
    """The same one twice, by another name."""
    twice = [
        replace(each, case=each.case.model_copy(update={"workload": OTHER}))
        for each in run.cases
        if each.case.workload == TRAIN
    ]
    return replace(run, cases=(*run.cases, *twice))


def test_each_training_that_is_named_can_be_picked(run: RunSummary) -> None:
    both = with_another_training(run)
    picked = pick_case(both, "workload=other")
    words = picked_words(both, "workload=other", picked)
    assert words is not None
    names = re.findall("`([^`]+)`", words)
    found = {pick_case(both, name).case.label for name in names}
    assert found == {"other 1x1 one node", "other 2x1 vnic-like", "other 2x1 reference"}


def test_of_several_ranks_there_may_be_one_training(run: RunSummary) -> None:
    cases = tuple(
        each for each in run.cases if each.case.plain_network_name in ("one node", "pod-like")
    )
    few = replace(run, cases=cases)
    words = picked_words(few, None, pick_case(few, None))
    assert words is not None
    assert words.startswith("of 2 trainings this is train 2x1 pod-like, the one of several ranks;")


def test_a_run_that_waits_for_nothing_identifies_no_network(run: RunSummary) -> None:
    base = pick_case(run, "network=vnic-like")
    assert base.without_s is not None
    computing = replace(base, step_s=replace(base.without_s, value=base.without_s.value * 1.01))
    found = what_if(run, computing, [Change(), roce(), at(0.1)])
    assert not found.is_identified
    assert found.communication_ratio == 1
    same, faster, slower = (each.step_s.value for each in found.answers)
    assert same == pytest.approx(computing.step_s.value)
    assert faster <= same <= slower


def test_what_no_link_explains_is_carried_over_once_and_not_multiplied(run: RunSummary) -> None:
    """A step three times as long as its link and its compute explain: something was in the way."""
    base = pick_case(run, "network=vnic-like")
    long_s = 3 * base.step_s.value
    disturbed = replace(base, step_s=replace(base.step_s, value=long_s, low=None, high=None))
    found = what_if(run, disturbed, [Change(), at(0.2)])
    plain = what_if(run, base, [at(0.2)]).answers[0].step_s.value
    assert found.communication_ratio == pytest.approx(1.25)
    assert 0.4 * long_s < found.excess_s < long_s
    same, slower = (each.step_s.value for each in found.answers)
    assert same == pytest.approx(long_s, rel=1e-6)
    assert slower < 2 * plain + found.excess_s


def test_more_ranks_do_more_work_and_send_more(run: RunSummary) -> None:
    two, four = ask(run, Change(label="x", nodes=2)), ask(run, Change(label="x", nodes=4))
    assert four.tokens_per_s < 2 * two.tokens_per_s
    assert four.step_s.value > two.step_s.value
    assert four.network_bytes == pytest.approx(1.5 * two.network_bytes)


def test_one_rank_alone_computes_and_waits_for_nothing(run: RunSummary) -> None:
    base = pick_case(run, "network=pod-like")
    assert base.without_s is not None
    answer = ask(run, Change(label="x", nodes=1))
    assert (answer.exposed_s, answer.network_bytes) == (0, 0)
    assert answer.step_s.value == pytest.approx(base.without_s.value, rel=0.05)


def test_fewer_messages_or_bytes_wait_less(run: RunSummary) -> None:
    now = ask(run, Change())
    half = ask(run, Change(label="x", gradient_bytes=2.0))
    rarely = ask(run, Change(label="x", accumulation=4))
    assert now.exposed_s > 1.7 * half.exposed_s
    assert rarely.speedup_ratio > 1.5
    assert rarely.compute_s == pytest.approx(4 * now.compute_s, rel=0.2)


def test_a_system_file_of_the_machine_is_taken_and_of_another_refused(run: RunSummary) -> None:
    base = pick_case(run, "network=pod-like")
    here = system()
    named = here.device.model_copy(update={"name": base.device_name})
    mine = here.model_copy(update={"device": named})
    found = what_if(run, base, [Change(), at(10)], system=mine)
    assert found.answers[0].step_s.value == pytest.approx(base.step_s.value, rel=1e-6)
    assert "system file" in found.machine_words
    with pytest.raises(InputError, match=r"of toy \(Toy CPU\), and the run computed on AMD EPYC"):
        what_if(run, base, [Change()], system=here)


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("network=pod-lik", "no training has network `pod-lik`", "did you mean `pod-like`?"),
        ("networks=pod-like", "KEY=VALUE, not `networks=pod-like`", "did you mean `network`?"),
        ("pod-like", "KEY=VALUE, not `pod-like`", "known: backend, network"),
        ("network=pod-like,shape=1x1", "no training of run", "there are train"),
    ],
)
def test_a_case_that_is_not_there_is_one_message(
    run: RunSummary, wanted: str, message: str, hint: str
) -> None:
    with pytest.raises(InputError) as refused:
        pick_case(run, wanted)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")


def test_a_run_without_a_training_says_so(run: RunSummary) -> None:
    cases = [each for each in run.cases if isinstance(each.case.workload, CollectivesWorkload)]
    with pytest.raises(InputError, match="holds no training"):
        pick_case(replace(run, cases=tuple(cases)), None)
    command = CommandWorkload.model_validate(
        {
            "kind": "command",
            "command": ["train.py"],
            "metrics": [{"name": "step_time_s", "regex": "([0-9.]+) s"}],
        }
    )
    mine = [
        replace(each, case=each.case.model_copy(update={"workload": command})) for each in cases
    ]
    with pytest.raises(InputError, match="a command of yours"):
        pick_case(replace(run, cases=tuple(mine)), None)


def test_two_trainings_are_told_apart_by_the_user(run: RunSummary) -> None:
    both = with_another_training(run)
    with pytest.raises(InputError, match="holds 6 trainings: say which") as refused:
        pick_case(both, None)
    assert "workload=" in (refused.value.hint or "")
    assert pick_case(both, "workload=other").case.workload == OTHER


def test_what_nobody_measured_of_a_network_is_not_made_up(run: RunSummary) -> None:
    """Unshaped, without collectives, and no ceiling known: more nodes on it can't be told."""
    trainings = [each for each in run.cases if each.case.workload == TRAIN]
    bare = replace(run, cases=tuple(replace(each, ceiling_gbps=None) for each in trainings))
    with pytest.raises(InputError, match="nothing of this run says what its network carries"):
        ask(bare, Change(nodes=4), "network=reference")
    assert ask(bare, roce(), "network=reference").step_s.value > 0


def test_own_collectives_are_taken_before_any_model(run: RunSummary) -> None:
    cases: dict[str, RunCase] = {
        each.case.network_name: each for each in train_cases(run) if each.case.nodes == 2
    }
    for network in (POD, VNIC, REFERENCE):
        found = what_if(run, cases[network.name], [Change()])
        assert found.basis == "own"
        assert {curve.op for curve in cases[network.name].curves} == {
            "all_reduce",
            "all_gather",
            "reduce_scatter",
        }


def test_on_a_gpu_of_the_users_their_entry_gives_the_proportions(tmp_path: Path) -> None:
    plain = sample_run(tmp_path, Options(has_failure=False, has_gpus=True))
    cases = tuple(
        replace(each, case=each.case.model_copy(update={"device": "cuda", "backend": "nccl"}))
        for each in plain.cases
    )
    run = replace(plain, cases=cases)
    base = replace(pick_case(run, "network=pod-like"), device_name="NVIDIA Q7 Turbo")
    assert "data sheet of l4, as NVIDIA Q7 Turbo is in no" in what_if(run, base, []).machine_words
    mine = find_gpu_named("h200-sxm").model_copy(update={"name": "q7-turbo", "matches": ("Q7",)})
    found = what_if(run, base, [at(1)], gpus=(mine, *known_gpus()))
    usual = what_if(run, replace(base, device_name="NVIDIA H200"), [at(1)])
    assert found.machine_words == "the data sheet of q7-turbo"
    assert found.answers[0].step_s.value == pytest.approx(usual.answers[0].step_s.value)


def test_on_gpus_the_data_sheet_gives_the_proportions(tmp_path: Path) -> None:
    run = sample_run(tmp_path, Options(has_failure=False, has_gpus=True))
    cases = tuple(
        replace(each, case=each.case.model_copy(update={"device": "cuda", "backend": "nccl"}))
        for each in run.cases
    )
    base = pick_case(replace(run, cases=cases), "network=pod-like")
    assert base.device_name == "NVIDIA H200"
    found = what_if(replace(run, cases=cases), base, [Change(), at(1), roce()])
    same, faster, fastest = (each.step_s.value for each in found.answers)
    assert same == pytest.approx(base.step_s.value, rel=1e-6)
    assert base.without_s is not None
    assert base.without_s.value * 0.999 <= fastest < faster < same
    assert "h200" in found.machine_words


def roce() -> Change:
    fabric = Fabric(name="roce-400g", transport="roce", node_gbps=400)
    kind = NamedNetwork(
        carried=CarriedFabric(fabric=fabric, basis="line", host_ratio=0.0),
        label="roce-400g",
        gbyte_per_s=40,
        low_gbyte_per_s=30,
        high_gbyte_per_s=48,
    )
    return Change(label="roce-400g", kind=kind)


def as_hsdp(run: RunSummary, ranks_per_node: int, **changes: object) -> RunSummary:
    """Every training of the run sharded inside nodes."""
    cases = []
    for each in run.cases:
        workload = each.case.workload.model_copy(update={"strategy": "hsdp", **changes})
        sizes = {"workload": workload, "ranks_per_node": ranks_per_node}
        cases.append(replace(each, case=each.case.model_copy(update=sizes)))
    return replace(run, cases=tuple(cases))


@pytest.mark.parametrize(
    ("ranks_per_node", "changes", "reason"),
    [
        (2, {}, "how fast ranks on cores exchange there is not known"),
        (1, {}, "HSDP in groups of one rank is DDP"),
        (4, {"shard_ranks": 2}, "predictions know groups of a whole node only"),
    ],
)
def test_what_hsdp_waits_for_inside_nodes_is_not_made_up(
    run: RunSummary, ranks_per_node: int, changes: dict[str, object], reason: str
) -> None:
    trained = replace(run, cases=tuple(e for e in run.cases if e.case.workload.kind == "train"))
    sharded = as_hsdp(trained, ranks_per_node, **changes)
    with pytest.raises(InputError, match=reason):
        what_if(sharded, pick_case(sharded, "network=pod-like"), [at(1)])


def test_a_run_on_cores_is_not_asked_for_hsdp(run: RunSummary) -> None:
    base = pick_case(run, "network=pod-like")
    with pytest.raises(InputError, match="HSDP in groups of one rank is DDP"):
        what_if(run, base, [Change(label="x", strategy="hsdp")])


def test_the_sample_is_what_the_tests_say(tmp_path: Path) -> None:
    made = sample_run(tmp_path, Options(has_failure=False))
    steps = {each.case.network_name: each.step_s.value for each in train_cases(made)}
    assert steps["pod-like"] > 2 * steps["vnic-like"] > 2.4 * steps["reference"]
