"""Proves that nccl-tests' JSON is read as it is written, or refused with a place."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.importing.reading import NCCL_TESTS, read

from broadgauge.specs.errors import InputError

TEXT = (NCCL_TESTS / "all_reduce.json").read_text()


def changed(change: Callable[[Any], None]) -> str:
    said = json.loads(TEXT)
    change(said)
    return json.dumps(said)


def test_real_json() -> None:
    (measured,) = read(TEXT)
    assert measured.case.label == "all_reduce 1x2 imported"
    assert measured.facts.gpus == ("NVIDIA H200",) * 2
    assert measured.facts.nccl == "2.28.9"
    assert measured.measurement.collectives[-1].busbw_gbyte_per_s == pytest.approx(300.147666)


def test_one_process_names_one_of_its_gpus() -> None:
    """Without MPI writeDeviceReport's one text is read as one device: util.cu, parseRankInfo."""

    def one_process(said: Any) -> None:
        said["config"]["ngpus"] = 2
        del said["config"]["devices"][1]

    (measured,) = read(changed(one_process))
    assert measured.case.shape == "1x2"


def test_wrong_values_make_a_failure() -> None:
    def wrong(said: Any) -> None:
        said["results"][3]["in_place"]["nwrong"] = 4.0
        said["out_of_bounds"]["count"] = 4

    (measured,) = read(changed(wrong))
    assert measured.error is not None
    assert measured.error.message.startswith("all_reduce of 64 KiB gave wrong values")


def set_at(*path: str | int, value: object) -> Callable[[Any], None]:
    def change(said: Any) -> None:
        *way, last = path
        for key in way:
            said = said[key]
        said[last] = value

    return change


FIRST = ("results", 0, "out_of_place")
DAMAGED: dict[str, tuple[Callable[[Any], None], str]] = {
    "a text": (
        set_at(*FIRST, "time", value="8.9"),
        r'file0: results\[0\].out_of_place.time: "8.9" is not a number',
    ),
    "NaN as nccl-tests writes it": (
        set_at(*FIRST, "time", value="nan"),
        r'file0: results\[0\].out_of_place.time: "nan" is not a number',
    ),
    "NaN as Python writes it": (set_at(*FIRST, "time", value=float("nan")), "NaN is not a number"),
    "huge": (set_at(*FIRST, "bus_bw", value=1e300), r"bus_bw: 1e\+300 is not a number from 0"),
    "an integer of 400 digits": (set_at("results", 0, "size", value=10**400), "is not a number"),
    "truth": (set_at("results", 0, "size", value=True), r"results\[0\].size: true is not"),
    "half a byte": (set_at("results", 0, "size", value=1.5), "1.5 is not a whole number"),
    "negative": (set_at(*FIRST, "time", value=-1), "-1 is not a number from 0"),
    "no body": (set_at(*FIRST[:2], value={"size": 8, "type": "float"}), "out_of_place: null"),
    "a list": (set_at("results", value={}), "results: {} is not a list"),
    "no results": (set_at("results", value=[]), "no size was measured"),
    "no devices": (set_at("config", "devices", value=[]), "how many ranks took part"),
    "too many GPUs": (set_at("config", "ngpus", value=10**9), "config.ngpus: 1000000000 is not"),
    "CPU times": (set_at(*FIRST, value={"cpu_time": 1.0, "bus_bw": 1.0}), "-C 1"),
    "an unknown type": (set_at("results", 0, "type", value="fl oat"), '"fl oat" is not a type'),
    "another program": (set_at("args", value=["./hypercube_perf"]), "nothing to import"),
    "no program": (set_at("args", value=[]), "does not say which collective"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_one_message_with_its_place(change: Callable[[Any], None], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(changed(change))


@pytest.mark.parametrize("at", [1, 100, len(TEXT) // 2, len(TEXT) - 2])
def test_a_cut_file(at: int) -> None:
    with pytest.raises(InputError, match="file0:1: the JSON that begins here is broken"):
        read(TEXT[:at], program="nccl-tests")
