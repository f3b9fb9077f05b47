"""Proves predict/system/host_overlap.py: what host and wire take together."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.making_systems import path, timing

from broadgauge.predict.system.host_overlap import (
    MOST_HOST_RATIO,
    USUAL,
    USUAL_HOST_RATIO,
    HostOverlap,
    host_overlaps,
    usual_overlap,
)
from broadgauge.predict.system.paths import sent_bytes
from broadgauge.specs.machines.system import CollectiveTime, PathTimes
from broadgauge.specs.networks.network import payload_rate_gbps

RATE_GBPS = 0.5
TIMES = st.floats(1e-6, 10)
OVERLAPS = st.builds(
    HostOverlap,
    sharpness=st.sampled_from([2.0, 8.0, math.inf]),
    unhidden_ratio=st.floats(0, 1),
    host_ratio=st.floats(1, 2),
    wire_ratio=st.floats(1, 3),
)


@given(OVERLAPS, TIMES, TIMES, st.floats(1, 100))
def test_neither_bound_is_beaten_and_more_of_either_is_never_faster(
    overlap: HostOverlap, host_s: float, wire_s: float, times: float
) -> None:
    together_s = overlap.together_s(host_s, wire_s)
    assert together_s >= max(host_s, wire_s) * (1 - 1e-12)
    assert overlap.together_s(times * host_s, wire_s) >= together_s * (1 - 1e-12)
    assert overlap.together_s(host_s, times * wire_s) >= together_s * (1 - 1e-12)
    assert overlap.together_s(times * host_s, times * wire_s) == pytest.approx(times * together_s)


def test_nothing_takes_no_time() -> None:
    assert USUAL["nccl"].together_s(0, 0) == USUAL["gloo"].together_s(0, 0) == 0


def test_nccl_hides_all_of_a_host_that_is_much_faster_than_the_wire() -> None:
    slowed = HostOverlap(sharpness=8.0, host_ratio=1.3)
    assert slowed.together_s(0.58, 1) == pytest.approx(1, abs=0.02)
    assert slowed.together_s(0.15, 1) == pytest.approx(1, abs=1e-5)
    assert slowed.together_s(0.95, 1) > 1.2
    assert USUAL["gloo"].together_s(0.15, 1) == pytest.approx(1.075)


@pytest.mark.parametrize("slowed", [1.0, 1.4])
def test_how_a_shaper_slows_the_host_is_read_from_the_shaped_path(slowed: float) -> None:
    host = _nccl()
    truth = HostOverlap(sharpness=8.0, host_ratio=slowed)
    found = host_overlaps((host, _shaped(host, truth)), host)
    assert set(found) == {"all_reduce", "all_gather", "reduce_scatter"}
    assert [each.host_ratio for each in found.values()] == pytest.approx([slowed] * 3, rel=0.03)


def test_a_disturbed_shaped_path_slows_no_host_by_more_than_a_bound() -> None:
    host = _nccl()
    shaped = _shaped(host, HostOverlap(sharpness=8.0, host_ratio=50))
    assert {each.host_ratio for each in host_overlaps((host, shaped), host).values()} == {
        MOST_HOST_RATIO
    }


def test_a_host_that_its_wire_hides_is_slowed_as_usual() -> None:
    """Half a percent of noise over a wire seven times as long says nothing."""
    host = _nccl(share=0.15)
    shaped = _shaped(host, HostOverlap(sharpness=8.0, host_ratio=1.0), noise=1.005)
    found = [each.host_ratio for each in host_overlaps((host, shaped), host).values()]
    assert found == pytest.approx([USUAL_HOST_RATIO] * 3, abs=0.02)


def test_a_collective_that_no_shaped_path_showed_has_what_the_others_have() -> None:
    seen = [HostOverlap(sharpness=8.0, host_ratio=each) for each in (1.1, 1.2, 1.9)]
    assert usual_overlap(seen, "nccl").host_ratio == 1.2
    assert usual_overlap([], "nccl") == USUAL["nccl"]


def _nccl(share: float = 0.8) -> PathTimes:
    """Of whose largest sizes the host's time is this share of the wire's."""
    host = path().model_copy(update={"backend": "nccl"})
    slower = [
        each.model_copy(update={"time": timing(share * max(1e-4, _wire_s(each)))})
        for each in host.collectives
    ]
    return host.model_copy(update={"collectives": tuple(slower)})


def _shaped(host: PathTimes, truth: HostOverlap, noise: float = 1.0) -> PathTimes:
    slow = tuple(
        each.model_copy(
            update={"time": timing(noise * truth.together_s(each.time.median_s, _wire_s(each)))}
        )
        for each in host.collectives
    )
    return host.model_copy(update={"name": "s", "rate_gbps": RATE_GBPS, "collectives": slow})


def _wire_s(each: CollectiveTime) -> float:
    sent = sent_bytes("nccl", each.op, 2, 1, each.size_bytes)
    return sent / (payload_rate_gbps(RATE_GBPS, 1500) * 1e9 / 8)
