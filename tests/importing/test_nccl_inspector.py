"""Proves that NCCL Inspector's lines are read: rendered ones (files/README.md)."""

import json
from pathlib import Path

import pytest
from tests.importing.reading import FILES, read_jobs

from broadgauge.specs.errors import InputError

TEXTS = [path.read_text() for path in sorted(FILES.glob("node*-pid*.log"))]


def test_the_files_of_one_job_are_one_launch() -> None:
    (job,) = read_jobs(*TEXTS)
    assert len(job.files) == 4
    assert [each.case.label for each in job.measured] == [
        "all_reduce-unknown 2x2 imported",
        "all_gather-unknown 2x2 imported",
        "reduce_scatter-unknown 2x2 imported",
    ]
    assert job.notes == ("file0, file1, file2, file3: 4 messages between two ranks were left out",)


def test_sizes_and_times_are_those_of_nccl_tests() -> None:
    """The Inspector's own figures, of its slowest rank, are the oracle."""
    (job,) = read_jobs(*TEXTS)
    slowest = [json.loads(line)["coll_perf"] for line in TEXTS[3].splitlines()[:5]]
    rows = {
        (row.op, row.size_bytes): row
        for each in job.measured
        for row in each.measurement.collectives
    }
    gather = rows["all_gather", 2**30]
    assert gather.busbw_gbyte_per_s == pytest.approx(slowest[2]["coll_busbw_gbs"], rel=1e-6)
    scatter = rows["reduce_scatter", 2**30]
    assert scatter.busbw_gbyte_per_s == pytest.approx(slowest[3]["coll_busbw_gbs"], rel=1e-6)
    large = rows["all_reduce", 2**30]
    assert large.iterations == 2
    mean_us = (slowest[0]["coll_exec_time_us"] + slowest[1]["coll_exec_time_us"]) / 2
    assert large.time_s == pytest.approx(mean_us / 1e6)
    assert rows["all_reduce", 8192].iterations == 1
    assert {row.measured_by for row in rows.values()} == {"nccl-inspector"}


def test_one_rank_of_four_says_so() -> None:
    (job,) = read_jobs(TEXTS[0])
    assert job.measured[0].notes == ("1 of 4 ranks wrote: the slowest of these counts",)


def test_another_job_is_another_launch() -> None:
    other = [text.replace("0x7f8c496ae9f661", "0x1111") for text in TEXTS]
    jobs = read_jobs(*TEXTS, *other)
    assert [len(job.files) for job in jobs] == [4, 4]
    assert jobs[0].measured[0].case.key == jobs[1].measured[0].case.key


def test_a_line_that_was_being_written_is_left_out() -> None:
    cut = TEXTS[0].rstrip("\n")[:-40]
    (job,) = read_jobs(cut)
    assert job.notes[0] == "file0: the last line is cut and was left out"
    whole = read_jobs(TEXTS[0])[0]
    assert job.measured[0].measurement == whole.measured[0].measurement


def test_times_of_processors_are_another_case() -> None:
    by_cpu = [text.replace("kernel_gpu", "collective_cpu") for text in TEXTS]
    keys = [read_jobs(*texts)[0].measured[0].case.key for texts in (TEXTS, by_cpu)]
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"coll_exec_time_us":5000', '"coll_exec_time_us":"5000"', "file0: coll_perf.coll_exec"),
        ('"n_ranks":4', '"n_ranks":0', "header.n_ranks: 0 is not a number from 1"),
        ('"nnodes":2', '"nnodes":3', "4 ranks on 3 nodes are not the same number on each"),
        ('"id":"0x7f8c496ae9f661"', '"id":null', "header.id: null is not a text"),
        ('"n_ranks":4', '"n_ranks":1', "no collective between ranks"),
        ('"coll_sn":2', '"coll_sn":2.5', "file0:2: coll_perf.coll_sn: 2.5 is not a whole number"),
        ('{"header"', "{header", "file0:1: the JSON that begins here is broken"),
    ],
)
def test_damage_is_one_message_with_its_place(old: str, new: str, message: str) -> None:
    assert old in TEXTS[0]
    with pytest.raises(InputError, match=message):
        read_jobs(TEXTS[0].replace(old, new), program="nccl-inspector")


def test_a_real_folder(tmp_path: Path) -> None:
    from broadgauge.importing.source import read_files

    for number, text in enumerate(TEXTS):
        (tmp_path / f"host-pid{number}.log").write_text(text)
    assert len(read_files(str(tmp_path))) == 4
