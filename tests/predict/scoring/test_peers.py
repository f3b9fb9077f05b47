"""Peers are scored on the same rows as we are."""

import pytest
from tests.predict.making_tables import table_of

from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.prediction import Interval
from broadgauge.predict.scoring.peers import against_rule, against_times, read_times, rule_s
from broadgauge.predict.scoring.scoring import Scored
from broadgauge.specs.errors import InputError


def scored(*rows: dict[str, str]) -> list[Scored]:
    return [
        Scored(row=row, step_time_s=Interval(value=1.0, low=0.5, high=2.0))
        for row in table_of(*rows).rows
    ]


def test_the_rule_is_flops_over_45_percent_of_the_peak() -> None:
    case = table_of({}).rows[0].case
    flops = (6 * 1.3e9 + 12 * 24 * 2048 * 2048) * 64 * 2048
    assert rule_s(case) == pytest.approx(flops / (0.45 * 989.5e12 * 16), rel=1e-3)


def test_arithmetic_that_a_gpu_lacks_is_done_by_another() -> None:
    old = {"gpu": "v100-sxm2-32gb", "dtype": "tf32"}
    plain = {"gpu": "v100-sxm2-32gb", "dtype": "fp32"}
    assert rule_s(table_of(old).rows[0].case) == rule_s(table_of(plain).rows[0].case)


@pytest.mark.parametrize("dtype", ["fp32", "tf32", "fp16", "bf16", "fp8"])
@pytest.mark.parametrize("gpu", ["v100-sxm2-32gb", "a100-sxm-80gb", "h100-sxm"])
def test_the_rule_has_the_peak_that_we_have(gpu: str, dtype: str) -> None:
    case = table_of({"gpu": gpu, "dtype": dtype}).rows[0].case
    flops = (6 * 1.3e9 + 12 * 24 * 2048 * 2048) * 64 * 2048
    peak = columns_of([case]).gemm_flops[0]
    assert rule_s(case) == pytest.approx(flops / (0.45 * peak * 16))


def test_the_rule_has_no_interval() -> None:
    sheet = against_rule(scored({}))
    assert sheet.peer.overall.interval_coverage is None
    assert sheet.ours.overall.interval_coverage == 1.0


def test_only_rows_that_the_peer_answers_are_compared() -> None:
    rows = scored({"id": "a", "step_time_s": "1"}, {"id": "b", "step_time_s": "4"})
    sheet = against_times("peer", rows, {"a": 1.5, "unknown": 3.0})
    assert (sheet.peer.overall.n, sheet.ours.overall.n) == (1, 1)
    assert sheet.peer.overall.mape == pytest.approx(0.5)
    assert sheet.ours.overall.mape == 0.0


def test_a_file_of_times() -> None:
    assert read_times(b"\xef\xbb\xbfid,step_time_s\na,1.5\nb,\n", "t.csv") == {"a": 1.5}


@pytest.mark.parametrize("data", [b"", b"id,other\na,1\n", b"id,step_time_s\na,x\n", b"\xff\xff"])
def test_a_file_that_is_none(data: bytes) -> None:
    with pytest.raises(InputError, match=r"t\.csv"):
        read_times(data, "t.csv")
