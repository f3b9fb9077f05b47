"""Would the launches of an experiment come up, on every platform that it names? Runs no launch."""

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.agent.preflight.machine import software_here
from broadgauge.leader.preflight.checked import Checked
from broadgauge.leader.preflight.findings import findings_of
from broadgauge.messages.preflight import PreflightDone, PreflightOpened
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.running.platforms import folders_of, make_platform
from broadgauge.running.preparing import Prepared
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import PlatformKind

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformPreflight:
    """What was found on one platform."""

    kind: PlatformKind
    done: PreflightDone


def preflight(prepared: Prepared, show: Show) -> Iterator[PlatformPreflight]:
    """Of each platform in turn. `show` takes what is waited for.

    Raises PlatformError where one is refused here, or its machines don't come; InputError.
    """
    prepared.secrets.check(prepared.plan.cases)
    for kind in prepared.experiment.platforms:
        yield _on(kind, prepared, show)


def _on(kind: PlatformKind, prepared: Prepared, show: Show) -> PlatformPreflight:
    """Whatever is made for it is gone afterwards."""
    experiment = prepared.experiment
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            show(text)

    if kind == "kubernetes":
        from broadgauge.running.in_pods import on_cluster

        experiment, words = on_cluster(experiment)
        tell(f"on Kubernetes {words}")
    with tempfile.TemporaryDirectory(prefix="broadgauge-preflight-") as scratch:
        platform = make_platform(
            kind,
            folders_of(prepared.plan, Path(scratch) / "logs"),
            prepared.secrets,
            experiment=experiment.model_copy(update={"preflight": False}),
            cases=prepared.plan.cases,
        )
        try:
            if isinstance(platform, LedPlatform):
                done = platform.preflight(_requests(prepared.plan, kind), tell)
            else:
                done = _of_this_machine()
        finally:
            platform.close()
            for note in platform.notes:
                tell(note)
        return PlatformPreflight(kind=kind, done=done)


def _requests(plan: Plan, kind: PlatformKind) -> Sequence[LaunchRequest]:
    """One launch of each set of cases that share one there."""
    found: dict[tuple[str, ...], LaunchRequest] = {}
    for launch in plan.launches:
        cases = tuple(plan.case(trial.case_key) for trial in launch.trials)
        if all(case.platform in (None, kind) for case in cases):
            request = LaunchRequest(
                launch_id=launch.launch_id,
                cases=cases,
                cores_per_node=launch.cores_per_node,
                limits=plan.limits,
            )
            found.setdefault(tuple(sorted({case.key for case in cases})), request)
    return tuple(found.values())


def _of_this_machine() -> PreflightDone:
    """Links between nodes that are emulated here each launch makes and measures itself."""
    begun_s, name = time.monotonic(), socket.gethostname()
    software = software_here(read_machine_hardware(Path("/"), os.environ))
    opened = PreflightOpened(number=1, software=software)
    return PreflightDone(
        lasted_s=time.monotonic() - begun_s,
        names=(name,),
        networks=(),
        num_calls=0,
        findings=findings_of(Checked(names=(name,), opened={0: opened})),
        failing=(),
    )
