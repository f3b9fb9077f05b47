"""Does the overview hold what the processes told?"""

import json

from tests.doctor.log.readings import (
    a_reading,
    on_sockets,
    processes,
    set_everywhere,
    the_communicator,
)

from broadgauge.doctor.log.facts import Adapter, LogReading
from broadgauge.doctor.log.overview import job_overview
from broadgauge.doctor.log.reading import read_text


def test_what_all_say_is_said_once() -> None:
    reading = a_reading(nodes=2, gpus=2)
    set_everywhere(reading, NCCL_DEBUG="INFO")
    view = job_overview(reading)
    assert (view.num_processes, view.hosts, view.num_nodes) == (4, ("node0", "node1"), 2)
    assert [(told.value, told.who) for told in view.networks] == [("IB", "ranks 0 to 3")]
    assert [(told.value, told.num_processes) for told in view.versions] == [("2.28.9", 4)]
    assert [(a.name, a.link, a.speed_gbps, a.num_processes) for a in view.adapters] == [
        ("mlx5_0:1", "RoCE", 400.0, 2),
        ("mlx5_1:1", "RoCE", 400.0, 2),
    ]
    assert [told.value for told in view.variables["NCCL_DEBUG"]] == ["INFO"]
    assert (view.init_s, view.bootstrap_s) == ((1.5, 1.5), (0.1, 0.1))
    assert view.communicator is not None
    assert (view.communicator.num_channels, view.communicator.rings) == (16, ((0, 1, 2, 3),))
    json.dumps(view.to_json())


def test_gpudirect_is_on_off_or_unknown() -> None:
    """A rank sends to the next: the last of each node sends between nodes, the first receives."""
    reading = a_reading(nodes=2, gpus=2)
    processes(reading)[0].gdr_by_adapter = {"mlx5_0": False}

    def rows() -> dict[str, tuple[str, dict[str, str]]]:
        return {row.who: (row.all, row.by_adapter) for row in job_overview(reading).gdr}

    assert rows() == {
        "rank 0": ("on", {"mlx5_0:1": "off"}),
        "ranks 1 and 3": ("on", {"mlx5_1:1": "on"}),
        "rank 2": ("on", {"mlx5_0:1": "on"}),
    }
    the_communicator(reading).paths = {}
    assert rows() == {
        "rank 0": ("off", {"mlx5_0:1": "off"}),
        "ranks 1 and 3": ("unknown", {"mlx5_1:1": "unknown"}),
        "rank 2": ("unknown", {"mlx5_0:1": "unknown"}),
    }


def test_sockets_have_threads_and_no_gpudirect() -> None:
    reading = on_sockets()
    processes(reading)[0].socket_threads = 4
    processes(reading)[0].sockets_per_thread = 2
    view = job_overview(reading)
    assert view.gdr == ()
    assert [(told.value, told.who) for told in view.sockets] == [
        ("4 threads of 2 sockets", "rank 0")
    ]


def test_an_adapter_is_called_what_it_is() -> None:
    reading = a_reading()
    for process in processes(reading):
        process.adapters = {"hfi1_0:1": Adapter("hfi1_0:1", "IB")}
    (adapter,) = job_overview(reading).adapters
    assert (adapter.link, adapter.speed_gbps) == ("Omni-Path", None)


def test_nothing_read_is_nothing_known() -> None:
    view = job_overview(LogReading())
    assert (view.num_processes, view.communicator, view.num_nodes) == (0, None, None)


def test_a_library_is_named_as_it_names_itself() -> None:
    assert job_overview(read_text("RCCL version : 2.22.3-HEAD:271856d")).library == "RCCL"
    assert job_overview(read_text("NCCL version 2.28.9+cuda12.9")).library == "NCCL"
