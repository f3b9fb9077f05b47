"""Are tables and JSON of nccl-tests read as they were written, whatever the version?"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.probes.nccl_tests.output import OutputError, nccl_version, read_json, read_text

HEAD_2_19 = """\
# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22807
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 1048576(bytes) warmup iters: 1 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on      node0 device  0 [0000:1b:00] NVIDIA H200
#
#                                                              out-of-place            in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)
"""
FOOT = """\
# Out of bounds values : {wrong} {word}
# Avg bus bandwidth    : 0.0331
#
"""
ROWS = {
    "all_reduce": "        8192          2048     float     sum      -1    31.04    0.26    0.26"
    "       0    30.91    0.27    0.27       0",
    "all_gather": "        8192          1024     float    none      -1    31.04    0.26    0.13"
    "       0    30.91    0.27    0.13       0",
    "send_recv": "        8192          2048     float     sum      -1    31.04    0.26    0.26"
    "       0    30.91    0.27    0.27     N/A",
    "before 2.13": "        8192          2048     float     sum    31.04    0.26    0.26  0e+00"
    "    30.91    0.27    0.27  0e+00",
    "before redop": "        8192          2048     float    31.04    0.26    0.26  0e+00"
    "    30.91    0.27    0.27  0e+00",
}


def table(row: str, wrong: int = 0) -> str:
    return HEAD_2_19 + row + "\n" + FOOT.format(wrong=wrong, word="FAILED" if wrong else "OK")


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_rows_of_all_programs_and_versions_are_read(row):
    output = read_text(table(row), "node0")
    (read,) = output.rows
    assert (read.size_bytes, read.time_s, read.was_checked) == (8192, 31.04e-6, True)
    assert read.busbw_gbyte_per_s in (0.26, 0.13)
    assert (output.is_correct, output.version, output.nccl) == (True, "2.19.6", "2.28.7")


def test_the_footer_judges_and_unchecked_is_unknown():
    row = ROWS["all_reduce"]
    assert read_text(table(row, wrong=3), "node0").is_correct is False
    unchecked = row.replace("       0", "     N/A")
    assert read_text(table(unchecked), "node0").is_correct is None


def test_lines_of_nccl_s_log_in_a_row_are_left_out():
    row = ROWS["all_reduce"]
    noise = "node0:4711:4720 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 0\n"
    for cut in (0, 40, 66, len(row)):
        text = table(row[:cut] + noise * 2 + row[cut:])
        assert read_text(text, "node0.cluster.local").rows[0].time_s == 31.04e-6


RECORDED = Path(__file__).parent / "nccl_tests_outputs"
"""Of nccl-tests 2.19.6 with NCCL 2.28.9 on two H200s, 2026-11-21; variables and paths left out."""


@pytest.mark.parametrize("name", ["all_reduce", "sendrecv", "unchecked"])
def test_recorded_tables_and_json_of_one_run_agree(name):
    text = read_text((RECORDED / f"{name}.txt").read_text(), "vm")
    exact = read_json((RECORDED / f"{name}.json").read_text())
    assert (text.nccl, exact.nccl, text.version) == ("2.28.9", "2.28.9", "2.19.6")
    assert text.is_correct is exact.is_correct is (None if name == "unchecked" else True)
    assert len(text.rows) == (1 if name == "unchecked" else 10)
    for printed, written in zip(text.rows, exact.rows, strict=True):
        assert printed.size_bytes == written.size_bytes
        assert printed.time_s == pytest.approx(written.time_s, abs=6e-9)
        assert printed.busbw_gbyte_per_s == pytest.approx(written.busbw_gbyte_per_s, abs=6e-3)


def test_a_recorded_table_between_lines_of_nccl_s_log_is_read():
    output = read_text((RECORDED / "nccl_debug.txt").read_text(), "vm")
    assert [row.size_bytes for row in output.rows] == [2**20, 2**21, 2**22]
    assert output.is_correct is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEAD_2_19,
        "x" * 100_000,
        table(ROWS["all_reduce"]).replace("# Out of bounds", "# In bounds"),
        table(ROWS["all_reduce"].replace("31.04", "0.00")),
        table(ROWS["all_reduce"].replace("31.04", "nan")),
    ],
)
def test_what_is_no_table_is_refused(text):
    with pytest.raises(OutputError):
        read_text(text, "node0")


def as_written(size, time_us, wrong, *, check=True):
    """The parts of the JSON that are read. Source: nccl-tests 2.19, src/util.cu."""
    body = {"time": time_us, "alg_bw": 1.0, "bus_bw": 2.0, "nwrong": wrong if check else None}
    return {
        "version": 3,
        "nccl_version": 22809,
        "config": {"iterations": 20},
        "results": [{"size": size, "count": 1, "type": "float", "out_of_place": body}],
        "out_of_bounds": {"count": int(wrong), "okay": "true"},
    }


@given(
    size=st.integers(1, 2**40),
    time_us=st.floats(0.01, 1e12),
    wrong=st.integers(0, 2**31),
    check=st.booleans(),
)
def test_json_gives_back_what_was_written(size, time_us, wrong, check):
    wrong = wrong if check else 0
    output = read_json(json.dumps(as_written(size, time_us, float(wrong), check=check)))
    assert output.rows[0].size_bytes == size
    assert output.rows[0].time_s == time_us / 1e6
    assert output.is_correct is (wrong == 0 if check else None)
    assert output.nccl == "2.28.9"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        json.dumps(as_written(1, 1.0, 0.0))[:-5],
        json.dumps(as_written(1, 1.0, 0.0) | {"results": []}),
        json.dumps(as_written(1, "nan", 0.0)),
        json.dumps(as_written(1, 1.0, 0.0)).replace('"size": 1', '"size": 1e999'),
        json.dumps(as_written(1, 0.0, 0.0)),
        json.dumps(as_written(1, 1.0, 0.0) | {"results": [{"size": 1, "out_of_place": None}]}),
    ],
)
def test_what_is_no_json_of_nccl_tests_is_refused(text):
    with pytest.raises(OutputError):
        read_json(text)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text):
    for read in (lambda: read_text(text, "node0"), lambda: read_json(text)):
        try:
            read()
        except OutputError:
            continue


def test_versions_of_nccl_in_words():
    assert [nccl_version(code) for code in (2708, 21003, 22809)] == ["2.7.8", "2.10.3", "2.28.9"]
