"""Where do cases run without emulation? On this machine as it is, one node: the reference."""

from broadgauge.agent.taken_cores import CoresLook, TakenCores, taken_since
from broadgauge.messages.free_port import free_port
from broadgauge.messages.launch_order import Mode
from broadgauge.platforms.gpu_choice import choose_gpus
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_plan import FREE_PORT, LaunchSettings, Programs, command_lines
from broadgauge.platforms.machine import cpu_quota_cores
from broadgauge.platforms.path_check import path_check, refuse_impossible_path
from broadgauge.platforms.starting import start_launch
from broadgauge.platforms.supervised import SupervisedLaunch
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import LaunchRequest, TrialProgress
from broadgauge.specs.secrets.values import Secrets


class LocalPlatform:
    """One node, no namespaces."""

    name = "local"

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
        earlier look at the cores; None: nobody wants to know who uses them."""
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
        """Start the ranks of one launch. Raises LaunchError."""
        case = request.cases[0]
        settings = self._settings(request, str(free_port("127.0.0.1")))
        refuse_impossible_path(case, settings.gpus)
        return start_launch(
            request,
            progress,
            settings,
            platform_name=self.name,
            take_notes=self._take_notes,
            check=path_check(case, self._folders.log_stem(request.launch_id)),
        )

    def _take_notes(self, notes: tuple[str, ...]) -> None:
        self._notes |= dict.fromkeys(notes)

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank, as a shell would take them."""
        return command_lines(request, self._settings(request, FREE_PORT))

    def close(self) -> None:
        """Nothing is held between launches."""

    def _settings(self, request: LaunchRequest, master_port: str) -> LaunchSettings:
        case = request.cases[0]
        if case.nodes != 1:
            raise LaunchError(
                f"{request.launch_id}: the local platform is one node, not {case.nodes}",
                hint="several nodes need `platform: emulated`",
            )
        return LaunchSettings(
            mode=Mode.PLAIN,
            programs=self._programs,
            folders=self._folders,
            master_port=master_port,
            gpus=choose_gpus(case, self._assumed_gpus),
            secrets=self._secrets,
        )


def taken_here(looked: CoresLook | None) -> dict[str, TakenCores]:
    """What others had of this machine's cores since then, as SeesMachines of specs/launching.py."""
    taken = taken_since(looked)
    return {} if taken is None else {"": taken}


def quota_notes() -> tuple[str, ...]:
    """Does the control group allow less time than the cores could give?"""
    quota = cpu_quota_cores()
    if quota is None:
        return ()
    return (f"the control group allows {quota:g} cores' time, however many cores there are",)
