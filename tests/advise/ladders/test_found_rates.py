"""Proves advise/ladders/found_rates.py: found networks are a ladder by what each carries."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.advise.ladders.found_runs import CARRIED_GBPS, NETWORKS, Truth, found_run
from tests.advise.ladders.ladder_runs import COMPUTE_S, STEP_BYTES, ladder_run

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.advise.ladders.ladders_of_run import ladders, seen_ladders
from broadgauge.advise.ladders.next_step import next_step
from broadgauge.results.run_path import read_summary
from broadgauge.specs.estimate import Estimate

SOCKETS = ("pod", "vnic", "sriov")


def only(path: Path) -> Ladder:
    (ladder,) = ladders(read_summary(path))
    return ladder


def bytes_of(ladder: Ladder) -> Estimate:
    assert ladder.found is not None, ladder.why
    estimate = ladder.found.critical_bytes.estimate
    assert estimate is not None
    return estimate


def left_out(ladder: Ladder) -> dict[str, str]:
    return {each.summary.case.network_name: each.why for each in ladder.left_out}


def test_a_jobs_bytes_are_found_by_what_an_all_reduce_carried(tmp_path: Path) -> None:
    ladder = only(found_run(tmp_path))
    assert ladder.found is not None
    assert [rung.name for rung in ladder.found.rungs] == list(NETWORKS)
    for rung in ladder.found.rungs:
        assert rung.rate_gbps == pytest.approx(CARRIED_GBPS[rung.name], rel=0.03)
        assert rung.payload_gbps == rung.rate_gbps
        assert 0.002 < rung.rate_error_ratio < 0.02
    assert ladder.rates_words == "all_reduce of 64 MiB carried"
    found = bytes_of(ladder)
    assert found.low is not None
    assert found.high is not None
    assert found.low < STEP_BYTES < found.high
    assert found.value == pytest.approx(STEP_BYTES, rel=0.03)
    base = ladder.found.base_s
    assert base.at_least is not None
    assert base.at_most is not None
    assert base.at_least < COMPUTE_S < base.at_most
    assert ladder.left_out == ()
    assert ladder.disagreements == ()


def test_the_interval_is_as_wide_as_the_rates_are_unsure(tmp_path: Path) -> None:
    """A tenth between launches of what a network carries is no part of a step's scatter."""

    def width(name: str, rate_spread: float) -> float:
        ratio = bytes_of(only(found_run(tmp_path / name, Truth(rate_spread=rate_spread))))
        assert ratio.half_width_ratio is not None
        return ratio.half_width_ratio

    assert width("sure", 0.001) < 0.03
    assert width("unsure", 0.1) > 0.06


def test_without_a_collective_plain_streams_say_it_of_sockets_alone(tmp_path: Path) -> None:
    """A stream's bytes on the wire are 95.6 % payload, which is what a step waits for."""
    ladder = only(found_run(tmp_path, sizes_bytes=()))
    assert ladder.found is not None
    assert ladder.rates_words == "plain TCP streams carried"
    assert [rung.name for rung in ladder.found.rungs] == list(SOCKETS)
    assert bytes_of(ladder).value == pytest.approx(STEP_BYTES * 1448 / 1514, rel=0.02)
    assert left_out(ladder) == {
        "fabric": "plain TCP streams say nothing of RoCE: an all_reduce of 16 MiB or more beside "
        "it would"
    }


def test_streams_say_nothing_where_nobody_knows_that_nccl_used_sockets(tmp_path: Path) -> None:
    unknown = only(found_run(tmp_path / "a", sizes_bytes=(), says_transport=False))
    assert unknown.found is None
    assert unknown.why == "0 networks can be used, and a curve needs 3"
    assert all("may have sent by RDMA" in why for why in left_out(unknown).values())
    by_log = Truth(nccl_network="Socket")
    known = only(found_run(tmp_path / "b", by_log, sizes_bytes=(), says_transport=False))
    assert known.found is not None
    assert len(known.rungs) == len(NETWORKS)
    rdma = Truth(nccl_network="IB")
    other = only(found_run(tmp_path / "c", rdma, sizes_bytes=(), says_transport=False))
    assert other.found is None


def test_gloo_sends_by_sockets_whatever_the_machines_have(tmp_path: Path) -> None:
    ladder = only(
        found_run(tmp_path, names=SOCKETS, sizes_bytes=(), num_gpus=0, says_transport=False)
    )
    assert ladder.found is not None
    assert [rung.name for rung in ladder.found.rungs] == list(SOCKETS)
    assert not any("differ in more" in note for note in ladder.notes)


def test_a_small_collective_says_nothing_of_a_rate(tmp_path: Path) -> None:
    """Its time is latency; streams are left, for those that send by sockets."""
    ladder = only(found_run(tmp_path, sizes_bytes=(65536,)))
    assert ladder.rates_words == "plain TCP streams carried"
    few = only(found_run(tmp_path / "few", sizes_bytes=(65536,), names=("pod", "fabric", "vnic")))
    assert few.found is None
    assert few.why == "2 networks can be used, and a curve needs 3"


def test_that_the_networks_differ_in_more_than_their_rate_is_said(tmp_path: Path) -> None:
    ladder = only(found_run(tmp_path))
    (note,) = ladder.notes
    assert note == (
        "the networks differ in more than their rate: pod and vnic by TCP, "
        "sriov by TCP over SR-IOV, fabric by RoCE"
    )


def test_a_network_on_which_a_step_is_longer_than_its_rate_says_is_named(tmp_path: Path) -> None:
    """A stack that takes the cores' time, say: no curve over the rate goes through it."""
    ladder = only(found_run(tmp_path, Truth(slower={"sriov": 1.4})))
    assert ladder.found is not None
    assert any(
        words.startswith("on sriov a step is") and "longer than what it carries" in words
        for words in ladder.disagreements
    ), ladder.disagreements


def test_no_rate_is_proposed_where_none_can_be_set(tmp_path: Path) -> None:
    step = next_step(only(found_run(tmp_path)))
    assert step.rates_gbps == ()
    assert step.is_found
    assert not step.lacks_unshaped


@pytest.mark.parametrize("launches", [1, 2])
def test_few_launches_give_no_interval(tmp_path: Path, launches: int) -> None:
    ladder = only(found_run(tmp_path, launches=launches))
    assert bytes_of(ladder).value == pytest.approx(STEP_BYTES, rel=0.05)
    assert bytes_of(ladder).low is None


def test_a_report_draws_found_networks_and_emulated_ones_stay_as_they_are(tmp_path: Path) -> None:
    (ladder,) = seen_ladders(read_summary(found_run(tmp_path / "found")))
    assert len(ladder.rungs) == 4
    two: Sequence[str] = ("pod", "vnic")
    assert seen_ladders(read_summary(found_run(tmp_path / "two", names=two))) == ()
    (emulated,) = ladders(read_summary(ladder_run(tmp_path / "emulated")))
    assert emulated.rates_words == ""
    assert emulated.found is not None
    assert {rung.name for rung in emulated.found.rungs} == {""}


@pytest.mark.parametrize("sizes_bytes", [(16 * 2**20, 2**30), (2**30, 16 * 2**20)])
def test_the_largest_all_reduce_says_it_wherever_it_stands(
    tmp_path: Path, sizes_bytes: tuple[int, ...]
) -> None:
    """Latency is in what a smaller one carries, and most where the network is fast."""
    ladder = only(found_run(tmp_path, sizes_bytes=sizes_bytes))
    assert ladder.rates_words == "all_reduce of 1 GiB carried"
    assert ladder.found is not None
    assert ladder.found.rungs[-1].rate_gbps == pytest.approx(CARRIED_GBPS["fabric"], rel=0.02)


def test_other_collectives_say_nothing(tmp_path: Path) -> None:
    """Gloo reduce-scatters as it all-reduces: twice the bytes of a ring."""
    ladder = only(found_run(tmp_path, op="reduce_scatter"))
    assert ladder.rates_words == "plain TCP streams carried"


def test_networks_at_one_rate_are_one_point(tmp_path: Path) -> None:
    """Two rates give a line through any two times, and nothing to doubt it by."""
    carried = {**CARRIED_GBPS, "sriov": CARRIED_GBPS["vnic"] * 1.001}
    ladder = only(found_run(tmp_path, Truth(carried_gbps=carried), names=SOCKETS))
    assert ladder.found is None
    assert ladder.why == "2 networks can be used, and a curve needs 3"
    (alike,) = ladder.left_out
    assert alike.why.startswith("what it carries can't be told from what ")


def test_gpudirect_nics_and_variables_are_differences_too(tmp_path: Path) -> None:
    own: dict[str, dict[str, Any]] = {
        "vnic": {"environment": {"NCCL_PROTO": "Simple"}},
        "pod": {"environment": {"NCCL_SOCKET_IFNAME": "eth0"}},
        "fabric": {"found": NETWORKS["fabric"] | {"gpudirect": False}},
    }
    (note,) = only(found_run(tmp_path, own=own)).notes
    assert note.endswith("fabric by RoCE without GPUDirect, variables NCCL_PROTO")
