"""Are too few channels for a fast network told?"""

from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import (
    a_reading,
    on_sockets,
    processes,
    set_everywhere,
    the_communicator,
)

from broadgauge.doctor.log.facts import Adapter
from broadgauge.specs.records.record import Confidence


def test_two_channels_over_fast_adapters() -> None:
    reading = a_reading()
    the_communicator(reading).num_channels = 2
    assert the(reading, "channels-few").symptom == "2 channels for adapters of 400 Gbit/s"
    set_everywhere(reading, NCCL_MAX_NCHANNELS="2")
    finding = the(reading, "channels-few")
    assert (finding.cause, finding.confidence) == (
        "NCCL_MAX_NCHANNELS=2 allows no more",
        Confidence.CERTAIN,
    )


def test_four_channels_are_enough() -> None:
    reading = a_reading()
    the_communicator(reading).num_channels = 4
    assert found(reading, "channels-few") == ()


def test_a_slow_adapter_needs_no_more() -> None:
    reading = a_reading()
    the_communicator(reading).num_channels = 2
    for process in processes(reading):
        process.adapters = {"mlx4_0:1": Adapter("mlx4_0:1", "RoCE", 25_000)}
    assert found(reading, "channels-few") == ()


def test_sockets_have_a_rule_of_their_own() -> None:
    reading = on_sockets()
    the_communicator(reading).num_channels = 2
    assert found(reading, "channels-few") == ()
