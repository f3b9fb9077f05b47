"""Which variables does a rank start with?"""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.platforms.launches import make_case, make_folders, make_request

from broadgauge.platforms.local import LocalPlatform
from broadgauge.platforms.paths import NCCL_VARIABLES
from broadgauge.platforms.rank_environment import (
    LaunchFacts,
    RankPlace,
    nccl_seen_gbps,
    rank_environment,
    recorded_variables,
    set_by_users,
)
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.secrets.values import Secrets, SecretText
from broadgauge.specs.secrets.variables import FromEnvironment

PLACE = RankPlace(
    rank=3,
    world_size=4,
    local_rank=1,
    local_world_size=2,
    node=1,
    num_nodes=2,
    num_cores=8,
    master_address="10.80.0.1",
    master_port="29500",
)
NET = Network(name="n", rate_gbps=25.0)


def facts(**changes: object) -> LaunchFacts:
    fields = {
        "launch_id": "b0.0",
        "log_stem": "/run/logs/b0.0",
        "interface": "eth0",
        "is_emulated": True,
        "gpus": ("0", "1", "2", "3"),
        "topology_files": ("/a.xml", "/b.xml"),
        "inherited": {"PATH": "/bin", "RANK": "77", "TORCHELASTIC_RUN_ID": "x"},
    }
    return LaunchFacts(**fields | changes)  # type: ignore[arg-type]


def nccl_case(**changes: object):  # type: ignore[no-untyped-def]
    fields = {"nodes": 2, "ranks_per_node": 2, "device": "cuda", "backend": "nccl"}
    return make_case("emulated", **{**fields, "network": NET, "environment": {}, **changes})


def path_case(path: str, backend: str = "nccl"):  # type: ignore[no-untyped-def]
    network = NodePath(name="p", path=path)
    return nccl_case(network=network, nodes=1, ranks_per_node=4, backend=backend)


@pytest.mark.parametrize("path", NCCL_VARIABLES)
def test_a_path_inside_a_node_leads_nccl_and_keeps_its_log(path: str) -> None:
    one_node = facts(
        topology_files=(), inherited={"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}
    )
    variables = rank_environment(path_case(path), replace(PLACE, node=0, num_nodes=1), one_node)
    assert variables.items() >= NCCL_VARIABLES[path].items()
    assert variables["NCCL_SOCKET_IFNAME"] == "=lo"
    assert variables["NCCL_NVLS_ENABLE"] == "0", "switched off by whoever started the tool"
    assert {"INIT", "GRAPH"} <= set(variables["NCCL_DEBUG_SUBSYS"].split(","))


def test_gloo_has_the_interface_of_nccls_launches_too() -> None:
    """A checkpoint of GPUs has a group over Gloo, which would look the host's name up."""
    for backend in ("nccl", "gloo"):
        variables = rank_environment(nccl_case(backend=backend), PLACE, facts())
        assert variables["GLOO_SOCKET_IFNAME"] == "eth0"
    one_node = facts(topology_files=())
    variables = rank_environment(path_case("shm"), replace(PLACE, node=0), one_node)
    assert variables["GLOO_SOCKET_IFNAME"] == "lo"


def test_the_users_own_variables_win_over_the_paths() -> None:
    case = path_case("shm").model_copy(update={"environment": {"NCCL_P2P_DISABLE": "0"}})
    variables = rank_environment(case, replace(PLACE, node=0), facts(topology_files=()))
    assert variables["NCCL_P2P_DISABLE"] == "0"


def test_a_found_network_is_sent_over_as_it_says_and_the_users_variables_win() -> None:
    def variables(**keys: object) -> dict[str, str]:
        network = Network.model_validate({"name": "n", "found": {"interface": "ib0", **keys}})
        environment = {"NCCL_IB_TIMEOUT": "23", "NCCL_NET_PLUGIN": "mine"}
        case = nccl_case(network=network, environment=environment)
        return rank_environment(case, PLACE, facts(is_emulated=False, topology_files=()))

    assert "NCCL_NET" not in variables()
    assert variables(transport="roce")["NCCL_NET"] == "IB"
    tcp = variables(transport="tcp")
    assert (tcp["NCCL_NET"], tcp["NCCL_IB_DISABLE"], tcp["NCCL_NET_PLUGIN"]) == (
        "Socket",
        "1",
        "mine",
    )


@pytest.mark.parametrize(
    ("found", "is_emulated", "left"),
    [
        (None, True, {"NCCL_NET_PLUGIN", "NCCL_IB_HBA"}),
        ({"transport": "tcp"}, False, {"NCCL_NET_PLUGIN", "NCCL_IB_HBA"}),
        ({}, False, {"NCCL_NET_PLUGIN", "NCCL_IB_HBA", "NCCL_IB_DISABLE", "NCCL_NET"}),
    ],
)
def test_what_users_set_is_told_from_what_we_set(
    found: dict[str, str] | None, is_emulated: bool, left: set[str]
) -> None:
    network = NET
    if found is not None:
        keys = {"name": "n", "found": {"interface": "ib0", **found}}
        network = Network.model_validate(keys)
    case = nccl_case(network=network, environment={"NCCL_NET_PLUGIN": "none"})
    recorded = dict.fromkeys(("NCCL_NET_PLUGIN", "NCCL_IB_HBA", "NCCL_IB_DISABLE"), "1")
    recorded |= {"NCCL_NET": "Socket", "NCCL_DEBUG_FILE": "<logs>/<launch>.rank0.nccl.log"}
    assert set_by_users(recorded, case, is_emulated=is_emulated).keys() == left


def test_gloo_on_the_path_sockets_uses_the_loopback_interface() -> None:
    case = path_case("sockets", backend="gloo")
    variables = rank_environment(case, replace(PLACE, node=0), facts(topology_files=()))
    assert variables["GLOO_SOCKET_IFNAME"] == "lo"
    assert not any(name.startswith("NCCL_") for name in variables)


def test_torchruns_contract() -> None:
    variables = rank_environment(nccl_case(), PLACE, facts())
    assert variables["PATH"] == "/bin"
    assert "TORCHELASTIC_RUN_ID" not in variables
    expected = {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "MASTER_ADDR": "10.80.0.1",
        "MASTER_PORT": "29500",
        "OMP_NUM_THREADS": "4",
    }
    assert {name: variables[name] for name in expected} == expected


ALMOST = {
    "AWS_ROLE_ARN": "arn:aws:iam::1:role/train",
    "VAULT_ROLE_ID": "r",
    "LOCAL_CACHE_DIR": "/scratch",
    "MY_RANK": "1",
    "RANKS": "8",
    "ROLE_OF_THIS_HOST": "trainer",
    "SLURM_JOB_ID": "17",
}
"""Names in which a launcher's own stand, and those of a scheduler."""


def test_a_name_like_a_launchers_reaches_the_ranks() -> None:
    variables = rank_environment(nccl_case(), PLACE, facts(inherited=ALMOST))
    assert variables.items() >= ALMOST.items()


def test_another_launchers_own_names_do_not_reach_the_ranks() -> None:
    of_launchers = ("ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS")
    of_mpi = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "BROADGAUGE_COMMAND_FD")
    inherited = facts(inherited=dict.fromkeys((*of_launchers, *of_mpi), "7"))
    variables = rank_environment(nccl_case(), PLACE, inherited)
    assert not {*of_launchers, *of_mpi} & variables.keys()


def test_an_experiment_may_set_what_is_only_like_a_launchers_name() -> None:
    assert nccl_case(environment=ALMOST).environment == ALMOST


@pytest.mark.parametrize("name", ["LOCAL_RANK", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "OMPI_X"])
def test_an_experiment_may_not_set_what_a_launcher_sets(name: str) -> None:
    with pytest.raises(ValueError, match="a launcher sets this variable"):
        nccl_case(environment={name: "1"})


def test_nccl_on_an_emulated_node() -> None:
    variables = rank_environment(nccl_case(), PLACE, facts())
    assert variables["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert variables["NCCL_HOSTID"] == "b0.0-node1"
    assert variables["NCCL_NET"] == "Socket"
    assert variables["NCCL_TOPO_FILE"] == "/b.xml"
    assert variables["NCCL_DEBUG_FILE"] == "/run/logs/b0.0.rank3.nccl.log"
    assert variables["CUDA_VISIBLE_DEVICES"] == "2,3"


def test_nccl_on_this_machine_is_left_alone() -> None:
    local = facts(is_emulated=False, interface="lo", topology_files=())
    variables = rank_environment(nccl_case(), PLACE, local)
    assert not {"NCCL_HOSTID", "NCCL_NET", "NCCL_TOPO_FILE", "NCCL_IB_DISABLE"} & variables.keys()


def test_the_case_wins_over_the_platform_and_the_platform_over_the_shell() -> None:
    inherited = facts(inherited={"NCCL_NVLS_ENABLE": "0", "NCCL_SOCKET_IFNAME": "ens3"})
    case = nccl_case(environment={"NCCL_NET": "IB"})
    variables = rank_environment(case, PLACE, inherited)
    assert variables["NCCL_NVLS_ENABLE"] == "0"
    assert variables["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert variables["NCCL_NET"] == "IB"


def test_gloo_is_told_its_interface() -> None:
    case = make_case("emulated", nodes=2, ranks_per_node=2)
    variables = rank_environment(case, PLACE, facts())
    assert variables["GLOO_SOCKET_IFNAME"] == "eth0"
    assert not any(name.startswith(("NCCL_", "CUDA_")) for name in variables)


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (Network(name="n", rate_gbps=25.0), 25.0),
        (Network(name="n"), 100.0),
        (Network(name="n", rate_gbps=25.0, nccl_seen_gbps="default"), None),
        (Network(name="n", rate_gbps=25.0, nccl_seen_gbps=200.0), 200.0),
    ],
)
def test_what_nccl_is_told_of_the_network(network: Network, expected: float | None) -> None:
    assert nccl_seen_gbps(nccl_case(network=network)) == expected


def test_gloo_and_one_node_are_told_nothing() -> None:
    assert nccl_seen_gbps(make_case("emulated")) is None
    assert nccl_seen_gbps(nccl_case(network=None, nodes=1)) is None


def test_a_rank_gets_the_true_values_of_secrets() -> None:
    secrets = Secrets(literals={"HF_TOKEN": SecretText("planted")}, environment={"MINE": "own"})
    declared = FromEnvironment(from_environment=True)
    case = nccl_case(environment={"HF_TOKEN": declared, "MINE": declared, "A": "1"})
    variables = rank_environment(case, PLACE, facts(secrets=secrets))
    assert variables.items() >= {"HF_TOKEN": "planted", "MINE": "own", "A": "1"}.items()
    with pytest.raises(InputError, match="`HF_TOKEN` is not set"):
        rank_environment(case, PLACE, facts(secrets=Secrets()))


def test_what_a_dry_run_shows_takes_secrets_from_the_shell(tmp_path: Path) -> None:
    environment = {"HF_TOKEN": FromEnvironment(from_environment=True), "A": "b c"}
    case = make_case("local", environment=environment)
    secrets = Secrets(literals={"HF_TOKEN": SecretText("planted")})
    platform = LocalPlatform(make_folders(tmp_path), secrets=secrets)
    for line in platform.rank_commands(make_request(case)):
        assert 'HF_TOKEN="$HF_TOKEN"' in line
        assert "A='b c'" in line
        assert "planted" not in line


def test_what_is_recorded_of_a_declared_secret_is_a_mask() -> None:
    case = nccl_case(environment={"NCCL_OWN": FromEnvironment(from_environment=True)})
    environment = {"NCCL_OWN": "planted", "GLOO_X": "http://me:planted@h", "TORCH_PAD_TOKEN": "<p>"}
    assert recorded_variables(environment, case, "b0.0", "/run/logs") == {
        "GLOO_X": "http://***@h",
        "NCCL_OWN": "***",
        "TORCH_PAD_TOKEN": "<p>",
    }


def test_what_is_recorded_has_no_secret_and_no_name_of_its_launch() -> None:
    environment = {
        "NCCL_DEBUG_FILE": "/run/logs/b0.0.rank0.log",
        "NCCL_HOSTID": "b0.0-node0",
        "TORCH_HUB_TOKEN": "hunter2",
        "OMP_NUM_THREADS": "2",
        "HOME": "/root",
    }
    assert recorded_variables(environment, nccl_case(), "b0.0", "/run/logs") == {
        "NCCL_DEBUG_FILE": "<logs>/<launch>.rank0.log",
        "NCCL_HOSTID": "<launch>-node0",
        "OMP_NUM_THREADS": "2",
        "TORCH_HUB_TOKEN": "***",
    }
