"""Proves that iperf3's JSON is read, on its own output over the loopback interface."""

import json

import pytest
from tests.importing.reading import FILES, read, read_jobs

from broadgauge.specs.errors import InputError

TCP = (FILES / "iperf3.json").read_text()


def test_tcp() -> None:
    (measured,) = read(TCP)
    said = json.loads(TCP)["end"]
    metrics = measured.measurement.metrics
    assert metrics["throughput_gbps"] == said["sum_received"]["bits_per_second"] / 1e9
    assert metrics["retransmits_count"] == said["sum_sent"]["retransmits"]
    assert metrics["mean_round_trip_s"] == pytest.approx(195e-6)
    assert measured.case.label == "iperf3-tcp 1x1 imported"
    assert measured.facts.version == "3.12"
    assert measured.facts.kernel == "6.8.0"
    assert measured.facts.started_unix_s == json.loads(TCP)["start"]["timestamp"]["timesecs"]


def test_between_two_machines() -> None:
    (measured,) = read(TCP.replace('"remote_host": "127.0.0.1"', '"remote_host": "192.0.2.2"'))
    assert measured.case.shape == "2x1"


def test_udp() -> None:
    (measured,) = read((FILES / "iperf3-udp.json").read_text())
    metrics = measured.measurement.metrics
    assert measured.case.workload.name == "iperf3-udp"
    assert metrics["lost_ratio"] == 0
    assert metrics["jitter_s"] == pytest.approx(91.5e-6, rel=1e-3)
    assert metrics["throughput_gbps"] == pytest.approx(0.1997, rel=1e-3)


def test_both_directions() -> None:
    (measured,) = read((FILES / "iperf3-bidir.json").read_text())
    metrics = measured.measurement.metrics
    assert metrics["throughput_gbps"] == pytest.approx(2.9117, rel=1e-4)
    assert metrics["reverse_gbps"] == pytest.approx(6.8469, rel=1e-4)
    assert measured.case.imported is not None
    assert measured.case.imported.settings["both_directions"] == "yes"


def test_a_test_that_failed_says_why() -> None:
    (measured,) = read((FILES / "iperf3-refused.json").read_text())
    assert measured.error is not None
    assert measured.error.message == "unable to connect to server: Connection refused"
    assert measured.measurement.metrics["throughput_gbps"] is None
    assert measured.measurement.missing["throughput_gbps"] == "the test failed"


@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        ("iperf3-nothing-arrived.json", ("throughput_gbps", "mean_round_trip_s")),
        ("iperf3-udp-nothing-arrived.json", ("throughput_gbps",)),
    ],
)
def test_a_test_of_which_nothing_arrived_has_failed(name: str, metrics: tuple[str, ...]) -> None:
    """Its own output, while packets with data were dropped: no error, a rate of 0."""
    (measured,) = read((FILES / name).read_text())
    assert measured.error is not None
    assert measured.error.message.startswith("nothing arrived: 0 bytes of ")
    assert all(measured.measurement.metrics[metric] is None for metric in metrics)


def test_nothing_on_the_way_back_has_failed() -> None:
    said = json.loads((FILES / "iperf3-bidir.json").read_text())
    said["end"]["sum_received_bidir_reverse"]["bytes"] = 0
    (measured,) = read(json.dumps(said))
    assert measured.error is not None
    assert measured.error.message.startswith("nothing arrived on the way back: 0 bytes of ")


def test_a_server_that_went_away_is_a_failure() -> None:
    (measured,) = read((FILES / "iperf3-server-gone.json").read_text())
    assert measured.error is not None
    assert "Connection reset by peer" in measured.error.message


def test_a_file_of_several_tests_is_as_many_launches() -> None:
    first, second, third = read(f"{TCP}\nsome words\n{TCP}\n{TCP}")
    assert first.case.key == second.case.key == third.case.key
    assert second.place.startswith("file0:")
    assert second.place != third.place != first.place


def test_the_lines_of_a_stream_have_a_way_out() -> None:
    with pytest.raises(InputError, match="--json-stream") as refused:
        read('{"event":"start","data":{"connected":[]}}\n')
    assert "iperf3 -J" in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"sum_received"', '"sum"', "file0: end.sum_received is missing"),
        ('"protocol": "TCP"', '"protocol": 6', "file0: start.test_start.protocol: 6 is not a text"),
        ('"num_streams": 1', '"num_streams": 0', "num_streams: 0 is not a number from 1"),
        ('"mean_rtt": 195', '"mean_rtt": [195]', r"mean_rtt: \[195\] is not a number"),
        ('"retransmits": 39', '"retransmits": NaN', "retransmits: NaN is not a number"),
        ('"timesecs": ', '"timesecs": 9', r"timestamp.timesecs: 9\d+ is not a number from 0 to 4"),
        ('"end": {', '"end": 3, "e": {', "file0: end: 3 is not an object"),
    ],
)
def test_damage_is_one_message_with_its_place(old: str, new: str, message: str) -> None:
    assert old in TCP
    with pytest.raises(InputError, match=message):
        read(TCP.replace(old, new))


def test_files_are_kept_apart() -> None:
    assert len(read_jobs(TCP, TCP)) == 2
