"""Where do cases run on emulated nodes? One cluster a launch: it is built in a blink."""

from pathlib import Path

from broadgauge.agent.taken_cores import CoresLook
from broadgauge.messages.launch_order import Mode
from broadgauge.platforms.gpu_choice import choose_gpus, numa_node_of_gpu
from broadgauge.platforms.gpu_watch import GpuWatch
from broadgauge.platforms.launch_folders import LaunchFolders, private
from broadgauge.platforms.launch_plan import (
    EMULATED_PORT,
    LaunchSettings,
    Programs,
    command_lines,
    interfaces_of,
)
from broadgauge.platforms.local import quota_notes, taken_here
from broadgauge.platforms.machine import ability
from broadgauge.platforms.nccl_log import mismatch, nccl_facts_of_rank, speed_note
from broadgauge.platforms.nccl_topology import topology_xml
from broadgauge.platforms.path_check import path_check, refuse_impossible_path
from broadgauge.platforms.rank_environment import nccl_seen_gbps
from broadgauge.platforms.starting import start_launch
from broadgauge.platforms.supervised import CheckResult, CheckTrial, SupervisedLaunch, TrialEvents
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, PlatformError
from broadgauge.specs.launching import LaunchRequest, TrialProgress
from broadgauge.specs.records.record import ErrorKind, TrialError
from broadgauge.specs.secrets.values import Secrets


class EmulatedPlatform:
    """Nodes of namespaces on this machine."""

    name = "emulated"

    def __init__(
        self,
        folders: LaunchFolders,
        *,
        secrets: Secrets | None = None,
        programs: Programs | None = None,
        assumed_gpus: int | None = None,
        looked: CoresLook | None = None,
    ) -> None:
        """`programs`: what a rank runs, for tests. `assumed_gpus`: see `choose_gpus`. `looked`: an
        earlier look at the cores; None: nobody wants to know who uses them.

        Raises PlatformError where nodes are refused.
        """
        granted = ability()
        if not granted.is_possible:
            raise PlatformError(
                f"this machine refuses emulated nodes: {granted.reason}", hint=granted.fix
            )
        self._folders = folders
        self._secrets = secrets or Secrets()
        self._assumed_gpus = assumed_gpus
        self._programs = programs or Programs()
        self._notes = dict.fromkeys(quota_notes())
        self.taken_cores = taken_here(looked)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know; it grows as launches start."""
        return tuple(self._notes)

    def start(self, request: LaunchRequest, progress: TrialProgress) -> SupervisedLaunch:
        """Build the cluster and start the ranks of one launch. Raises LaunchError."""
        settings = self._settings(request)
        refuse_impossible_path(request.cases[0], settings.gpus)
        write_topology_files(request, settings)
        return start_launch(
            request,
            progress,
            settings,
            platform_name=self.name,
            take_notes=self._take_notes,
            check=self._nccl_check(request),
        )

    def _take_notes(self, notes: tuple[str, ...]) -> None:
        self._notes |= dict.fromkeys(notes)

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank, as a shell would take them."""
        return command_lines(request, self._settings(request))

    def close(self) -> None:
        """Nothing is held between launches."""

    def _settings(self, request: LaunchRequest) -> LaunchSettings:
        case = request.cases[0]
        files: tuple[str, ...] = ()
        if case.nodes > 1 and nccl_seen_gbps(case) is not None:
            stem = self._folders.log_stem(request.launch_id)
            files = tuple(f"{stem}.node{node}.topology.xml" for node in range(case.nodes))
        return LaunchSettings(
            mode=Mode.NAMESPACES,
            programs=self._programs,
            folders=self._folders,
            master_port=EMULATED_PORT,
            gpus=choose_gpus(case, self._assumed_gpus),
            secrets=self._secrets,
            topology_files=files,
        )

    def _nccl_check(self, request: LaunchRequest) -> CheckTrial | None:
        """What must NCCL's log say after a good trial? Looked at until it has said it."""
        case = request.cases[0]
        stem = self._folders.log_stem(request.launch_id)
        if case.nodes == 1 or case.backend != "nccl":
            return path_check(case, stem)

        def check(_events: TrialEvents, _watch: GpuWatch) -> CheckResult:
            facts = nccl_facts_of_rank(stem, 0)
            note = speed_note(case, facts, nccl_seen_gbps(case))
            if note is not None:
                self._notes[note] = None
            contradiction = mismatch(case, facts)
            if contradiction is None:
                return CheckResult()
            return CheckResult(error=TrialError(kind=ErrorKind.REFUSED, message=contradiction))

        return check


def write_topology_files(request: LaunchRequest, settings: LaunchSettings) -> None:
    """Write what NCCL is told of each node's NICs. Raises LaunchError."""
    case: Case = request.cases[0]
    seen_gbps = nccl_seen_gbps(case)
    if seen_gbps is None:
        return
    interfaces = interfaces_of(case, settings.mode)
    for node, path in enumerate(settings.topology_files):
        first = settings.gpus[node * case.ranks_per_node] if settings.gpus else None
        numa_node = -1 if first is None else numa_node_of_gpu(first)
        try:
            Path(path).parent.mkdir(0o700, parents=True, exist_ok=True)
            with open(path, "w", opener=private) as file:
                file.write(topology_xml(interfaces, seen_gbps, numa_node))
        except OSError as error:
            raise LaunchError(f"{path} can't be written: {error.strerror or error}") from error
