"""Proves that nccl-tests' tables are read as they are printed, whatever stands around them.

Tables of nccl-tests 2.19.6 are real (two H200s); those of older versions, of several nodes and of
other flags are rendered from its source and say so.
"""

import json
import math
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.importing.reading import FILES, NCCL_TESTS, read, read_jobs

from broadgauge.specs.errors import InputError

REAL = (NCCL_TESTS / "all_reduce.txt").read_text()
SENDRECV = (NCCL_TESTS / "sendrecv.txt").read_text()
LINES = REAL.splitlines()
LAST_ROW = next(line for line in LINES if line.lstrip().startswith("268435456"))

OLD = (FILES / "all-gather-2.13.txt").read_text()
"""Rendered from nccl-tests 2.13, which does not name its program."""


def test_a_real_table() -> None:
    (measured,) = read(REAL)
    case, rows = measured.case, measured.measurement.collectives
    assert case.label == "all_reduce 1x2 imported"
    assert (case.device, case.backend) == ("cuda", "nccl")
    assert [row.size_bytes for row in rows] == [2**k for k in range(10, 29, 2)]
    assert {row.iterations for row in rows} == {50}
    assert {row.is_correct for row in rows} == {True}
    assert rows[-1].busbw_gbyte_per_s == pytest.approx(300.15, abs=0.01)
    assert measured.measurement.metrics["busbw_gbyte_per_s"] == rows[-1].busbw_gbyte_per_s
    assert measured.facts.version == "2.19.6"
    assert measured.facts.nccl == "2.28.9"
    assert measured.facts.gpus == ("NVIDIA H200",) * 2
    assert measured.place == "file0:3"


def test_out_of_place_counts_and_not_in_place() -> None:
    (measured,) = read(SENDRECV)
    assert measured.case.workload.name == "send_recv"
    assert measured.measurement.collectives[-1].time_s == pytest.approx(873.94e-6)


def test_text_and_json_of_one_run_are_one_case() -> None:
    (text,) = read(REAL)
    (exact,) = read((NCCL_TESTS / "all_reduce.json").read_text())
    assert text.case.key == exact.case.key
    assert text.measurement.metrics["busbw_gbyte_per_s"] == pytest.approx(
        exact.measurement.metrics["busbw_gbyte_per_s"], rel=1e-4
    )


def test_the_table_of_an_old_version_on_two_nodes() -> None:
    (measured,) = read(OLD)
    assert measured.case.label == "all_gather 2x2 imported"
    assert measured.measurement.collectives[-1].busbw_gbyte_per_s == pytest.approx(15.73, abs=0.01)
    assert measured.facts.version is None


def test_what_an_old_table_does_not_say_has_to_be_given() -> None:
    bare = "\n".join(line for line in OLD.splitlines()[1:] if "Rank" not in line)
    with pytest.raises(InputError, match=r"file0:1: .*which collective") as refused:
        read(bare)
    assert "--op" in str(refused.value)
    with pytest.raises(InputError, match="how many ranks") as refused:
        read(bare, op="all_gather")
    assert "--nodes 2 --ranks 16" in str(refused.value)
    (measured,) = read(bare, op="all_gather", nodes=2, ranks=4)
    assert measured.case.label == "all_gather 2x2 imported"


def test_an_old_table_tells_its_collective_by_its_columns() -> None:
    unnamed = "\n".join(OLD.splitlines()[1:])
    (measured,) = read(unnamed)
    assert measured.case == read(OLD)[0].case
    (measured,) = read(re.sub(r"0$", "N/A", unnamed, flags=re.MULTILINE))
    assert measured.case.label == "all_to_all 2x2 imported"
    unchecked = re.sub(r"(?<=\d) +0(?=\s)", " N/A", unnamed)
    with pytest.raises(InputError, match="is: all_gather or all_to_all, by its columns"):
        read(unchecked)


@pytest.mark.parametrize(("op", "ranks"), [("all_reduce", 4), ("all_gather", 2), ("reduce", 4)])
def test_a_wrong_collective_or_number_of_ranks_shows_in_busbw(op: str, ranks: int) -> None:
    bare = "\n".join(line for line in OLD.splitlines()[1:] if "Rank" not in line)
    with pytest.raises(InputError, match=rf"file0:8: .* not that of {op} among {ranks} ranks"):
        read(bare, op=op, nodes=2, ranks=ranks)


WRAPPED = {
    "mpirun --tag-output": "[1,0]<stdout>:{line}",
    "mpirun --timestamp-output": "Mon Nov 23 11:00:01 2026<stdout>: {line}",
    "kubectl logs --timestamps": "2026-11-23T11:00:01.123456789Z {line}",
    "kubectl logs --prefix": "[pod/nccl-0/main] {line}",
    "srun --label": "0: {line}",
    "docker compose": "worker-1  | {line}",
    "colours": "\x1b[32m{line}\x1b[0m",
    "carriage returns": "{line}\r",
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_what_launchers_put_around_lines_changes_nothing(wrap: str) -> None:
    (plain,) = read(REAL)
    (wrapped,) = read("\n".join(wrap.format(line=line) for line in LINES))
    assert wrapped.measurement == plain.measurement
    assert wrapped.case == plain.case


def test_nccls_log_in_the_middle_of_rows() -> None:
    (measured,) = read((NCCL_TESTS / "nccl_debug.txt").read_text())
    assert [row.size_bytes for row in measured.measurement.collectives] == [2**20, 2**21, 2**22]
    log = "vm:2064:2064 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
    broken = REAL.replace("67108864      float", f"67108864 {log}     float")
    (mended,) = read(broken)
    assert mended.measurement == read(REAL)[0].measurement


def test_several_tables_and_a_repeated_one() -> None:
    found = read(REAL + SENDRECV + REAL)
    assert [each.case.workload.name for each in found] == ["all_reduce", "send_recv", "all_reduce"]
    assert found[0].case.key == found[2].case.key != found[1].case.key
    assert [each.place for each in found] == ["file0:3", "file0:30", "file0:57"]


def test_types_and_operations_are_cases_of_their_own() -> None:
    half = LAST_ROW.replace("float", " half")
    largest = LAST_ROW.replace("   sum", "   max")
    measured = read(REAL.replace(LAST_ROW, f"{LAST_ROW}\n{half}\n{largest}"))
    assert [each.case.workload.name for each in measured] == [
        "all_reduce",
        "all_reduce-float16",
        "all_reduce",
    ]
    assert len({each.case.key for each in measured}) == 3
    assert measured[1].measurement.collectives[0].dtype == "float16"
    assert measured[2].case.imported is not None
    assert measured[2].case.imported.settings == {"redop": "max"}


def test_figures_of_iterations_and_timestamps_beside_a_row() -> None:
    """Rendered from nccl-tests 2.19: per-iteration columns, and `-S`."""
    cells = LAST_ROW.split()
    head, out, inside = cells[:5], cells[5:9], cells[9:]
    stats = ["890.11", "899.20", "899.00", "0.31"]
    row = " ".join([*head, *out, *stats, *inside, *stats]) + "  2026-11-23 11:00:01"
    (measured,) = read(REAL.replace(LAST_ROW, row))
    assert measured.measurement == read(REAL)[0].measurement


def test_in_place_alone_is_another_case() -> None:
    """Rendered from nccl-tests 2.19, writeBenchMarkLineNullBody."""
    cells = LAST_ROW.split()
    row = " ".join([*cells[:5], *cells[9:]])
    both, in_place = read(REAL.replace(LAST_ROW, row))
    assert in_place.measurement.collectives[0].time_s == pytest.approx(894.78e-6)
    assert in_place.case.imported is not None
    assert in_place.case.imported.settings == {"buffers": "in place"}
    assert len(both.measurement.collectives) == 9


@pytest.mark.parametrize("side", ["out of place", "in place"])
def test_wrong_values_make_a_failure(side: str) -> None:
    cells = LAST_ROW.split()
    cells[8 if side == "out of place" else 12] = "17"
    footer = ("# Out of bounds values : 0 OK", "# Out of bounds values : 17 FAILED")
    (measured,) = read(REAL.replace(LAST_ROW, " ".join(cells)).replace(*footer))
    assert measured.error is not None
    assert measured.error.kind == "wrong_result"
    assert measured.error.message == (
        "all_reduce of 256 MiB gave wrong values, says nccl-tests itself"
    )


def test_a_footer_that_counts_errors_makes_a_failure() -> None:
    """Before 2.13 rows have an error, not a count."""
    rows = REAL.replace("       0", " 1.5e-06")
    (measured,) = read(rows.replace("values : 0 OK", "values : 3 FAILED"))
    assert measured.error is not None
    assert measured.error.message == "all_reduce gave wrong values, says nccl-tests itself"
    assert read(rows)[0].error is None


def test_what_was_not_checked_is_not_correct() -> None:
    (measured,) = read((NCCL_TESTS / "unchecked.txt").read_text())
    assert {row.is_correct for row in measured.measurement.collectives} == {None}


def test_sizes_that_round_to_nothing_are_left_out() -> None:
    row = f"0 0 float sum -1 {'8.00 0.00 0.00 0 ' * 2}"
    (measured,) = read(REAL.replace(LAST_ROW, f"{row}\n{LAST_ROW}"))
    assert measured.measurement == read(REAL)[0].measurement


def test_unlike_settings_are_other_cases() -> None:
    captured = REAL.replace("graph: 0", "graph: 4").replace("agg iters: 1", "agg iters: 8")
    assert read(captured)[0].case.key != read(REAL)[0].case.key


def test_split_ranks_count_as_their_group() -> None:
    """NCCL_TESTS_SPLIT: two communicators of two ranks, each over two nodes."""
    lines = OLD.splitlines()
    split = "\n".join(
        line.replace("Group  0", "Group  1") if "device  1" in line else line for line in lines
    )
    text = split.replace("7.86", "5.24").replace("15.73", "10.49")
    (measured,) = read(text)
    assert measured.case.label == "all_gather 2x1 imported"
    assert measured.case.imported is not None
    assert measured.case.imported.settings == {"groups": "2"}


def test_a_program_that_is_no_collective_of_ours_is_passed_over() -> None:
    (found,) = read_jobs(REAL + SENDRECV.replace("sendrecv_perf", "hypercube_perf"))
    assert len(found.measured) == 1
    assert found.notes == ("file0:30: hypercube_perf is no collective that Broadgauge knows",)
    with pytest.raises(InputError, match="nothing to import: file0:3: hypercube_perf"):
        read(REAL.replace("all_reduce_perf", "hypercube_perf"))


DAMAGED = {
    "cut after a row": ("\n".join(LINES[:14]), "file0:3: this table .* has no end, after 3 rows"),
    "cut within a row": ("\n".join([*LINES[:14], LAST_ROW[:60]]), r"file0:15: no whole row"),
    "begun again": (REAL[: REAL.index("# Out of")] + REAL, "file0:3: this table .* has no end"),
    "no header": ("\n".join(LINES[9:]), r"file0:3: a row of nccl-tests outside of a table"),
    "no rows": ("\n".join(LINES[:11] + LINES[21:]), "nothing to import"),
    "a word for a time": (REAL.replace("894.34", "fast"), "file0:21: no whole row"),
    "NaN": (REAL.replace("894.34", "nan"), "file0:21: nan us and 300.15 GB/s busbw .* can't be"),
    "no time": (REAL.replace("894.34", "0.00"), "file0:21: 0 us and"),
    "infinite": (REAL.replace("894.34", "inf"), "file0:21: inf us and"),
    "half a number": (REAL.replace("894.34", "89-4.3"), "file0:21: time '89-4.3' is no number"),
    "another busbw": (REAL.replace("300.15  300.15", "300.15  600.30"), "file0:21: 600.3 GB/s"),
    "a huge size": (REAL.replace(" 268435456 ", f" {2**60} "), "file0:21: .* is not that of"),
    "CPU times": (
        REAL.replace("redop    root     time", "redop root cputime"),
        r"file0:10: .*-C 1",
    ),
    "uneven nodes": (REAL.replace("1722 on         vm", "1722 on vm2"), None),
    "three of two": (
        OLD.replace("Pid   1724 on     node-b", "Pid   1724 on     node-c"),
        "4 ranks on 3 nodes are not the same number on each",
    ),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_one_message_with_its_place(text: str, message: str | None) -> None:
    if message is None:
        assert read(text)[0].case.shape == "2x1"
        return
    with pytest.raises(InputError, match=message):
        read(text)


@given(st.integers(0, len(REAL)), st.sampled_from("#\n 0na-.\x00é"))
def test_one_wrong_letter_is_read_or_refused(at: int, letter: str) -> None:
    """Never a figure that is none."""
    with suppress(InputError):
        measured = read(REAL[:at] + letter + REAL[at + 1 :], program="nccl-tests")
        rows = [row for each in measured for row in each.measurement.collectives]
        assert all(math.isfinite(row.busbw_gbyte_per_s) and row.time_s > 0 for row in rows)


@given(st.integers(0, len(REAL)))
def test_a_cut_file_is_never_a_smaller_result(at: int) -> None:
    """Either the whole table, or a message."""
    try:
        measured = read(REAL[:at], program="nccl-tests")
    except InputError:
        return
    assert [len(each.measurement.collectives) for each in measured] == [10]


def test_json_settings_follow_the_same_rules() -> None:
    said = json.loads((NCCL_TESTS / "all_reduce.json").read_text())
    said["config"]["graph"] = 4
    said["config"]["aggregated_iterations"] = 8
    captured = REAL.replace("graph: 0", "graph: 4").replace("agg iters: 1", "agg iters: 8")
    assert read(json.dumps(said))[0].case.key == read(captured)[0].case.key
