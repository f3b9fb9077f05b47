"""What do a launch's logs say of a trial? Read by the doctor, once a launch and after a failure.

NCCL writes as the ranks connect, so what it says of the first trial stands for the others of the
launch: its network is the process's. Nothing is read while ranks are timed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.doctor.log.conclusions.why_sockets import WhySockets
from broadgauge.platforms.meant_transport import (
    rules_asked_for,
    transport_error,
    transport_finding,
)
from broadgauge.specs.case import Case
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import Finding, TrialError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLogs:
    """What the doctor made of some files."""

    nccl: NcclUse | None = None
    findings: tuple[Finding, ...] = ()
    """Warnings and errors."""
    why_sockets: WhySockets | None = None
    """None: nothing was sent over sockets, as far as known."""

    def findings_of(self, case: Case) -> tuple[Finding, ...]:
        """Without what the case asks for."""
        asked = rules_asked_for(case)
        return tuple(finding for finding in self.findings if finding.rule not in asked)


Read = Callable[[Sequence[Path]], ReadLogs]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldByLogs:
    """What of it belongs to one trial."""

    nccl: NcclUse | None = None
    findings: tuple[Finding, ...] = ()
    error: TrialError | None = None
    """Of a trial that went well and another way than its case is meant to."""


@dataclass(slots=True, kw_only=True)
class LaunchLogs:
    """The logs of one launch."""

    folder: Path
    launch_id: str
    read: Read
    _of_good: ReadLogs | None = field(default=None, init=False)

    def of_trial(self, case: Case, error: TrialError | None) -> ToldByLogs:
        """After it; `error`: why it failed. Of Gloo nothing is read but after a failure."""
        if error is not None:
            told = self.read((*self._nccl_files(), *self._outputs()))
            return ToldByLogs(nccl=told.nccl, findings=told.findings_of(case))
        if case.backend != "nccl" or case.world_size < 2:
            return ToldByLogs()
        told = self._read_once()
        finding = transport_finding(case, told.nccl, told.why_sockets)
        others = told.findings_of(case)
        return ToldByLogs(
            nccl=told.nccl,
            findings=others if finding is None else (finding, *others),
            error=transport_error(finding),
        )

    def _read_once(self) -> ReadLogs:
        if self._of_good is None or self._of_good.nccl is None:
            self._of_good = self.read(self._nccl_files())
        return self._of_good

    def _nccl_files(self) -> tuple[Path, ...]:
        """In the order of names: rank 10 before rank 2, which is all the same to who reads them."""
        return self._found(f"{self.launch_id}.rank*.nccl*.log")

    def _outputs(self) -> tuple[Path, ...]:
        """What the ranks wrote."""
        written = set(self._found(f"{self.launch_id}.rank*.log")) - set(self._nccl_files())
        return tuple(sorted(written))

    def _found(self, pattern: str) -> tuple[Path, ...]:
        return tuple(sorted(self.folder.glob(pattern)))
