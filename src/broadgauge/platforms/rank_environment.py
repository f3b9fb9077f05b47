"""Which variables does a rank start with? Pure: what the tool's own environment holds comes in.

Three layers, the later one winning: what the tool inherited, what the platform sets, and the
case's own variables.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from broadgauge.messages.launcher_variables import is_set_by_a_launcher
from broadgauge.platforms.meant_transport import transport_variables
from broadgauge.platforms.paths import NCCL_VARIABLES, SOCKETS_ONLY
from broadgauge.specs.case import Case
from broadgauge.specs.secrets.names import MASK, is_secret, without_credentials
from broadgauge.specs.secrets.values import Secrets

_RECORDED = re.compile(r"^(NCCL|GLOO|TORCH|OMP|CUDA)_")
LOG_VARIABLES = ("NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Those of ours that name files in the folder for logs."""
LOOPBACK = "lo"
"""What a path inside a node uses of TCP, for sockets or to find each other."""
UNSHAPED_SEEN_GBPS = 100.0
"""What NCCL is told of an unshaped link. Source: specs/networks/network.py, `nccl_seen_gbps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlace:
    """Where a process stands in the launch; for a `command`, one process is a whole node."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node: int
    num_nodes: int
    num_cores: int
    """Of its node."""
    master_address: str
    master_port: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What all ranks of a launch have in common."""

    launch_id: str
    log_stem: str
    """`<log folder>/<launch id>`: NCCL's and the flight recorder's files begin with it."""
    interface: str
    """The NIC between nodes, several with commas between, as Gloo and NCCL want them; `lo` on one
    machine."""
    is_emulated: bool
    gpus: tuple[str, ...] = ()
    """Identifiers of all GPUs of the launch, node by node."""
    topology_files: tuple[str, ...] = ()
    """NCCL's, by node; empty: NCCL reads the devices itself."""
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Secrets = field(default_factory=Secrets)
    """Where the true values of the case's secrets are."""


def rank_environment(case: Case, place: RankPlace, facts: LaunchFacts) -> dict[str, str]:
    """All of a rank's variables but the numbers of its pipes, with the true values of secrets.

    Raises InputError where one is missing.
    """
    inherited = {
        name: value for name, value in facts.inherited.items() if not is_set_by_a_launcher(name)
    }
    return inherited | given_variables(case, place, facts)


def given_variables(case: Case, place: RankPlace, facts: LaunchFacts) -> dict[str, str]:
    """What a rank is given on top of what it inherits, with the true values of secrets.

    Raises InputError where one is missing.
    """
    own = {
        name: variable
        if isinstance(variable, str)
        else facts.secrets.value(name, variable).reveal()
        for name, variable in case.environment.items()
    }
    return platform_variables(case, place, facts) | own


def platform_variables(case: Case, place: RankPlace, facts: LaunchFacts) -> dict[str, str]:
    """What the platform sets: torchrun's contract, the threads, and the library's settings.

    Source of the contract: docs of torch.distributed.run, "Environment Variables".
    """
    variables = {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.world_size),
        "LOCAL_RANK": str(place.local_rank),
        "LOCAL_WORLD_SIZE": str(place.local_world_size),
        "GROUP_RANK": str(place.node),
        "GROUP_WORLD_SIZE": str(place.num_nodes),
        "MASTER_ADDR": place.master_address,
        "MASTER_PORT": place.master_port,
        "OMP_NUM_THREADS": str(max(1, place.num_cores // place.local_world_size)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    if case.device == "cuda":
        ranks = case.ranks_per_node
        gpus = facts.gpus[place.node * ranks : (place.node + 1) * ranks]
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    # With NCCL, too: checkpoints of GPUs have a group of their own over Gloo.
    variables["GLOO_SOCKET_IFNAME"] = _interface(case, facts)
    if case.backend != "gloo":
        variables |= _nccl_variables(case, place, facts)
    return variables


def _interface(case: Case, facts: LaunchFacts) -> str:
    return facts.interface if case.path is None else LOOPBACK


def _nccl_variables(case: Case, place: RankPlace, facts: LaunchFacts) -> dict[str, str]:
    """NCCL's own, and those of torch around it.

    `=` asks for exactly these interfaces. NCCL's log goes to files, as the ranks' output is the
    user's. The flight recorder would write to /tmp. Source: docs.nvidia.com/deeplearning/nccl,
    "Environment Variables"; torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp of torch 2.11.
    """
    log_name = "nccl.%p.log" if case.workload.is_under_torchrun else "nccl.log"
    variables = {
        "NCCL_SOCKET_IFNAME": f"={_interface(case, facts)}",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,NET,ENV,GRAPH",
        "NCCL_DEBUG_FILE": f"{facts.log_stem}.rank{place.rank}.{log_name}",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{facts.log_stem}.flight-recorder.rank",
    }
    if facts.is_emulated:
        variables |= {
            "NCCL_HOSTID": f"{facts.launch_id}-node{place.node}",
            **SOCKETS_ONLY,
            "NCCL_MNNVL_ENABLE": "0",
        }
    variables |= transport_variables(case)
    if facts.topology_files:
        variables["NCCL_TOPO_FILE"] = facts.topology_files[place.node]
    if case.path is not None:
        variables |= NCCL_VARIABLES[case.path.path]
    return variables


def nccl_seen_gbps(case: Case) -> float | None:
    """Which NIC speed is NCCL told? None: it reads the device itself, or has no network."""
    if case.backend != "nccl" or case.link is None:
        return None
    seen = case.link.nccl_seen_gbps
    if seen == "default":
        return None
    return seen or case.link.rate_gbps or UNSHAPED_SEEN_GBPS


def set_by_users(recorded: Mapping[str, str], case: Case, *, is_emulated: bool) -> dict[str, str]:
    """What is kept of a rank's variables, without those that the platform gave it.

    What is left stood in the experiment, or in the shell or on the host that it came from.
    """
    place = RankPlace(
        rank=0,
        world_size=case.world_size,
        local_rank=0,
        local_world_size=case.ranks_per_node,
        node=0,
        num_nodes=case.nodes,
        num_cores=1,
        master_address="",
        master_port="",
    )
    facts = LaunchFacts(launch_id="", log_stem="", interface="", is_emulated=is_emulated)
    ours = {*platform_variables(case, place, facts), *LOG_VARIABLES} - case.environment.keys()
    return {name: value for name, value in recorded.items() if name not in ours}


def recorded_variables(
    environment: Mapping[str, str], case: Case, launch_id: str, log_folder: str
) -> dict[str, str]:
    """What is kept of a rank's variables: the libraries' own, secrets masked.

    A launch's own names are taken out, so that equal launches have equal environments.
    """
    return {
        name: MASK
        if is_secret(name) or not isinstance(case.environment.get(name, ""), str)
        else without_credentials(value.replace(log_folder, "<logs>").replace(launch_id, "<launch>"))
        for name, value in sorted(environment.items())
        if _RECORDED.match(name)
    }
