"""Are nccl-tests' tables found in a log, whatever stands around them, and nothing else?"""

from pathlib import Path

import pytest

from broadgauge.doctor.log.nccl_tests import ops_of_row, row_of
from broadgauge.doctor.log.reading import read_text

NCCL_TESTS = Path(__file__).parents[2] / "probes/nccl_tests_outputs"
TABLE = """\
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
# out-of-place in-place
# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)
  1073741824  268435456  float  sum  -1  4031.2  266.36  466.13  0  4030.1  266.43  466.25  0
node0:12:12 [0] NCCL INFO Using network IB
  8589934592  2147483648  float  sum  -1  31384  273.70  478.98  0  31380  273.74  479.04  0
# Out of bounds values : 0 OK
# Avg bus bandwidth : 212.34
"""


def test_rows_and_the_average_are_found_among_other_lines() -> None:
    measured = read_text(TABLE, "job.log").measured
    assert [(row.op, row.size_bytes, row.busbw_gbyte_per_s) for row in measured] == [
        ("all_reduce", 2**30, 466.13),
        ("all_reduce", 2**33, 478.98),
        ("all_reduce", None, 212.34),
    ]
    assert str(measured[1].place) == "job.log:8"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("  1048576  262144  float  none  -1  55.1  19.0  16.6  0  54.0  19.4  16.9  0", 16.6),
        ("  1048576  262144  float  sum  55.1  19.0  16.6  0  54.0  19.4  16.9  0", 16.6),
        ("  1048576  262144  half  55.1  19.0  16.6  N/A", 16.6),
        ("2026-11-23T09:00:00Z stdout F 1048576 262144 float sum -1 55.1 19.0 16.6 0", 16.6),
        ("[1,0]<stdout>: 1048576 262144 bfloat16 sum -1 55.1 19.0 16.6 0", 16.6),
        ("loss is a float sum of 3 parts", None),
        ("step 12 400 float 1.0", None),
        ("1048576 262144 float sum -1 x y z 0", None),
        ("", None),
    ],
)
def test_a_row_is_told_from_other_lines(text: str, row: float | None) -> None:
    found = row_of(text)
    assert found == (None if row is None else (2**20, row))


def test_without_a_table_nothing_is_measured() -> None:
    row = "1048576 262144 float sum -1 55.1 19.0 16.6 0 54.0 19.4 16.9 0\n"
    assert read_text(row * 3).measured == []


HEAD = "# Collective test starting: all_reduce_perf\n# out-of-place in-place\n"
FIRST, LAST = "  1073741824  268435456  float  sum  -1", "  4031.2  266.36  466.13  0"
SAID = "node0:12:12 [0] NCCL INFO Using network IB\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{FIRST}{SAID}{LAST}\n",
        f"{FIRST}{SAID}{SAID}{SAID}{LAST}",
        f"{FIRST}{LAST}{SAID}{FIRST[:10]}\n",
        f"{FIRST}  4031.2  266.36{SAID}  466.13  0\n# Out of bounds values : 0 OK\n",
    ],
)
def test_a_row_into_which_nccl_wrote_is_read_whole(text: str) -> None:
    measured = read_text(HEAD + SAID + text, "job.log").measured
    assert [(row.size_bytes, row.busbw_gbyte_per_s) for row in measured] == [(2**30, 466.13)]


def test_the_rows_around_a_cut_one_are_their_own() -> None:
    rows = [
        f"{FIRST}{LAST}\n",
        f"{FIRST}{SAID}{LAST}\n",
        f"{FIRST}{LAST}{SAID}",
        f"{FIRST}{LAST}\n",
    ]
    assert len(read_text(HEAD + SAID + "".join(rows)).measured) == 4


OUT_AND_IN = "268435456 67108864 float {columns} 4031.2 {algbw} {busbw} {out} 4031 1.0 1.0 {inside}"


@pytest.mark.parametrize(
    ("columns", "algbw", "busbw", "wrong", "ops"),
    [
        ("sum -1", 266.36, 466.13, "0 0", ("all_reduce",)),
        ("sum -1", 266.36, 233.07, "0 0", ("reduce_scatter",)),
        ("sum 0", 100.0, 100.0, "0 0", ("reduce",)),
        ("sum -1", 100.0, 100.0, "0 N/A", ("send_recv",)),
        ("none -1", 266.36, 233.07, "0 0", ("all_gather",)),
        ("none -1", 266.36, 233.07, "0 N/A", ("all_to_all",)),
        ("none -1", 266.36, 233.07, "N/A N/A", ("all_gather", "all_to_all")),
        ("none 0", 100.0, 100.0, "0 0", ("broadcast",)),
        ("sum -1", 100.0, 150.0, "0 0", ()),
    ],
)
def test_an_old_header_tells_its_collective_by_its_columns(
    columns: str, algbw: float, busbw: float, wrong: str, ops: tuple[str, ...]
) -> None:
    out, inside = wrong.split()
    row = OUT_AND_IN.format(columns=columns, algbw=algbw, busbw=busbw, out=out, inside=inside)
    assert ops_of_row(row, 8) == ops
    assert ops_of_row(row, 1) == ()


def test_real_rows_of_two_ranks_are_told_apart_by_what_is_checked_in_place() -> None:
    found = {}
    for name in ("all_reduce", "sendrecv", "unchecked"):
        text = (NCCL_TESTS / f"{name}.txt").read_text()
        found[name] = ops_of_row(next(line for line in text.splitlines() if row_of(line)), 2)
    assert found == {
        "all_reduce": ("all_reduce",),
        "sendrecv": ("send_recv",),
        "unchecked": ("all_reduce", "send_recv"),
    }


RANKS = "".join(
    f"#  Rank {rank:2} Group  0 Pid {5026 + rank} on n0{rank % 2} device {rank // 2:2} [0x1b] "
    "NVIDIA H100 80GB HBM3\n"
    for rank in range(16)
)


def test_the_list_of_devices_names_hosts_ranks_and_gpus() -> None:
    listed = read_text(RANKS + TABLE).listed_ranks
    assert len(listed) == 16
    assert {each.host for each in listed.values()} == {"n00", "n01"}
    assert {each.gpu for each in listed.values()} == {"NVIDIA H100 80GB HBM3"}


@pytest.mark.parametrize(
    ("wrong", "num_wrong"), [("4 60", 60), ("0 N/A", 0), ("2e-07 3e-07", 0), ("N/A N/A", 0)]
)
def test_wrong_values_are_counted_row_by_row(wrong: str, num_wrong: int) -> None:
    out, inside = wrong.split()
    figures = {"columns": "sum -1", "algbw": 266.36, "busbw": 466.13}
    row = OUT_AND_IN.format(**figures, out=out, inside=inside)
    (measured,) = read_text(f"{TABLE.splitlines()[0]}\n{RANKS}#   out-of-place\n{row}\n").measured
    assert measured.num_wrong == num_wrong


ROW = "  8589934592  2147483648  float  sum  -1  44789  191.79  359.60  0  44790  191.78  359.59  0"


@pytest.mark.parametrize("at", range(len("  8589934592  2147483648  float  "), len(ROW)))
def test_wherever_a_row_is_cut_its_bandwidth_is_its_own(at: int) -> None:
    """A part that has as many columns as a row of an older version is not one."""
    measured = read_text(f"{HEAD}{SAID}{ROW[:at]}{SAID}{ROW[at:]}\n").measured
    assert [(row.size_bytes, row.busbw_gbyte_per_s) for row in measured] == [(2**33, 359.6)]


def test_a_row_that_is_whole_before_nccls_words_is_read_at_the_end_of_a_file() -> None:
    measured = read_text(f"{HEAD}{SAID}{ROW}{SAID}").measured
    assert [row.busbw_gbyte_per_s for row in measured] == [359.6]
