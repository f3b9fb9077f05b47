"""Are the variables that NCCL, its plugins and torch read spelt right, known, possible and wise?

The same of an environment and of what a log says was set: nothing is read here.
"""

from collections.abc import Iterator, Mapping

from broadgauge.catalog.nccl_variables import (
    OF_NCCL,
    NcclVariable,
    find_nccl_variable,
    known_nccl_variables,
    newest_known_release,
    version_of,
)
from broadgauge.doctor.host.variable_devices import device_findings
from broadgauge.doctor.host.variable_evidence import Variables
from broadgauge.doctor.host.variable_traps import trap_findings
from broadgauge.doctor.host.variable_values import value_findings
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.near_words import did_you_mean

_NO_SETTING = ("container images", "builds")
"""Readers of variables that NCCL's name only decorates."""


def variable_findings(
    variables: Mapping[str, str], *, version: str | None, facts: HardwareFacts | None
) -> tuple[Finding, ...]:
    """What is wrong with these.

    `version`: of NCCL, `2.28.9`; None: unknown, and nothing is said of versions. `facts`: of the
    machine on which they are set; None: unknown, and nothing is said of its devices.
    """
    asked = Variables(values=variables, version=version, facts=facts)
    return (
        *_unknown_names(asked),
        *_other_versions(asked),
        *value_findings(asked),
        *device_findings(asked),
        *trap_findings(asked),
    )


def _unknown_names(asked: Variables) -> Iterator[Finding]:
    """Names that no release reads, and nobody else known."""
    newest = ".".join(map(str, newest_known_release()))
    known = [entry.name for entry in known_nccl_variables() if not entry.name.endswith("*")]
    for name in sorted(asked.values):
        if not name.startswith(("NCCL_", "TORCH_NCCL_")) or find_nccl_variable(name) is not None:
            continue
        is_newer = asked.release > newest_known_release()
        yield Finding(
            rule="host-variable-unknown",
            severity=Severity.INFO if is_newer else Severity.WARNING,
            symptom=f"nobody known reads {name}",
            evidence=(asked.evidence(name),),
            cause=f"no release of NCCL up to {newest} has it, no known plugin, nor PyTorch",
            fix=did_you_mean(name, known) or "remove it, unless a program of your own reads it",
            confidence=Confidence.POSSIBLE if is_newer else Confidence.LIKELY,
        )


def _other_versions(asked: Variables) -> Iterator[Finding]:
    """Names that this release does not know yet, or not any more; old names of torch's."""
    for name in sorted(asked.values):
        entry = find_nccl_variable(name)
        if entry is None or entry.reader in _NO_SETTING:
            continue
        if entry.reader == "torch" and entry.meaning.startswith("Old name of "):
            yield _old_name(asked, entry)
        elif entry.reader == OF_NCCL and asked.release and asked.version is not None:
            yield from _not_this_release(asked, entry, asked.version)


def _old_name(asked: Variables, entry: NcclVariable) -> Finding:
    return Finding(
        rule="host-variable-old-name",
        severity=Severity.INFO,
        symptom=f"{entry.name} is a name of PyTorch before 2.2",
        evidence=(asked.evidence(entry.name),),
        cause="newer releases take it with a warning",
        fix=f"TORCH_{entry.name}",
        confidence=Confidence.CERTAIN,
    )


def _not_this_release(asked: Variables, entry: NcclVariable, version: str) -> Iterator[Finding]:
    first, last = version_of(entry.first or ""), version_of(entry.last or "")
    if first[:2] > asked.release[:2]:
        when, fix = "yet", f"NCCL {entry.first} is the first that reads it"
    elif last[:2] < asked.release[:2] and asked.release[:2] <= newest_known_release()[:2]:
        when, fix = "any more", f"remove it; NCCL {entry.last} was the last that read it"
    else:
        return
    yield Finding(
        rule="host-variable-version",
        severity=Severity.WARNING,
        symptom=f"NCCL {version} does not read {entry.name} {when}: it does nothing",
        evidence=(asked.evidence(entry.name),),
        cause=entry.meaning or "a setting of another release",
        fix=fix,
        confidence=Confidence.CERTAIN,
    )
