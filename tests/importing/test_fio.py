"""Proves that fio's JSON is read, on its own output."""

import json

import pytest
from tests.importing.reading import FILES, read

from broadgauge.results.kinds.registry import in_results
from broadgauge.specs.errors import InputError

READ = (FILES / "fio-randread.json").read_text()
TWO = (FILES / "fio-two-jobs.json").read_text()


def test_a_job_that_reads() -> None:
    (measured,) = read(READ)
    said = json.loads(READ)["jobs"][0]["read"]
    metrics = measured.measurement.metrics
    assert metrics == {
        "read_gbyte_per_s": said["bw_bytes"] * 1e-9,
        "read_operations_per_s": said["iops"],
        "read_latency_s": said["lat_ns"]["mean"] * 1e-9,
        "read_latency_p99_s": said["clat_ns"]["percentile"]["99.000000"] * 1e-9,
    }
    assert measured.case.label == "randread 1x1 imported"
    assert measured.facts.version == "3.33"
    kind = in_results(measured.case.workload)
    assert kind.direction_of("read_gbyte_per_s") == "higher"
    assert kind.direction_of("read_latency_s") == "lower"


def test_clones_of_a_job_add_up() -> None:
    writer, mixed = read(TWO)
    said = json.loads(TWO)["jobs"]
    clones = [job["read"] for job in said if job["jobname"] == "mixed"]
    assert len(clones) == 2
    metrics = mixed.measurement.metrics
    assert metrics["read_gbyte_per_s"] == pytest.approx(sum(c["bw_bytes"] for c in clones) * 1e-9)
    assert metrics["read_operations_per_s"] == pytest.approx(sum(c["iops"] for c in clones))
    means = [clone["lat_ns"]["mean"] * 1e-9 for clone in clones]
    assert min(means) <= (metrics["read_latency_s"] or 0) <= max(means)
    assert metrics["read_latency_p99_s"] is None
    assert "clones" in mixed.measurement.missing["read_latency_p99_s"]
    assert set(metrics) & {"write_gbyte_per_s", "read_gbyte_per_s"} == {
        "write_gbyte_per_s",
        "read_gbyte_per_s",
    }
    assert set(writer.measurement.metrics) == {
        "write_gbyte_per_s",
        "write_operations_per_s",
        "write_latency_s",
        "write_latency_p99_s",
    }


def test_words_in_front_of_the_json_and_a_job_that_failed() -> None:
    (measured,) = read((FILES / "fio-failed.json").read_text())
    assert measured.error is not None
    assert measured.error.message == "fio ended the job with error 22"


def test_where_it_wrote_makes_no_other_case() -> None:
    elsewhere = READ.replace("/data/file", "/scratch/other")
    deeper = READ.replace('"bs": "4k"', '"bs": "8k"')
    assert read(elsewhere)[0].case.key == read(READ)[0].case.key != read(deeper)[0].case.key


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"bw_bytes": 61288599', '"bw_bytes": "61 MB/s"', r"file0: jobs\[0\].read.bw_bytes: "),
        ('"iops": 14963.036963', '"iops": -1', r"read.iops: -1 is not a number from 0"),
        ('"jobname": "randread"', '"jobname": null', r"jobs\[0\].jobname: null is not a text"),
        ('"jobs": [', '"jobs": [3, ', r"jobs\[0\]: 3 is not an object"),
        ('"io_bytes": 61349888', '"io_bytes": 0', "nothing was read or written"),
    ],
)
def test_damage_is_one_message_with_its_place(old: str, new: str, message: str) -> None:
    assert old in READ
    with pytest.raises(InputError, match=message):
        read(READ.replace(old, new))


def test_a_name_of_any_letters_is_a_name_here() -> None:
    (measured,) = read(READ.replace('"jobname": "randread"', '"jobname": "Größe 4K / nvme"'))
    assert measured.case.workload.name == "gr-e-4k-nvme"
