"""Was an external network plugin meant, and could it not be loaded or not be initialised?"""

import re
from collections.abc import Collection, Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.conclusions.why_sockets import PLUGIN_FIX
from broadgauge.doctor.log.facts import LogReading, Speaker, UnknownWarning
from broadgauge.doctor.log.job import (
    external_plugins_failed,
    first_place,
    is_one_node,
    uses_sockets,
    variable,
)
from broadgauge.doctor.log.origins import EXTERNAL, subject_of
from broadgauge.doctor.log.speakers import named, who
from broadgauge.specs.records.record import Confidence, Finding, Severity

_TOO_OLD = re.compile(r"(?P<library>\S+): version [`'](?P<version>[^']+)' not found")
"""The dynamic linker's words. Source: glibc elf/dl-version.c."""
_NO_NETWORK = "no-network-plugin"
"""The rule of NCCL's line that no network is left, as NCCL_NET asks for the plugin's."""
_TOLD_BY = frozenset({"efa-no-device", "efa-not-used"})
"""Rules that say of a plugin itself why it could not be initialised."""


def plugin_failed(reading: LogReading) -> Iterator[Conclusion]:
    """A plugin was loaded and gave up, and TCP sockets carry the job instead: its own words why."""
    failed = {
        process.speaker: names
        for process in reading.processes.values()
        if uses_sockets(process) and (names := external_plugins_failed(process))
    }
    if not failed or any(seen.rule.id in _TOLD_BY for seen in reading.seen):
        return
    processes = [reading.processes[speaker] for speaker in failed]
    plugin = named(name for names in failed.values() for name in names)
    own = [each for each in reading.unknown_warnings if _is_of_plugin(each, failed)]
    yield Conclusion(
        place=own[0].place if own else first_place(processes),
        finding=Finding(
            rule="plugin-failed",
            severity=Severity.INFO if is_one_node(reading) else Severity.WARNING,
            symptom=(
                f"the network plugin {plugin} could not be initialised on "
                f"{who(reading, failed)}, which use TCP sockets instead"
            ),
            evidence=quoted((each.place, each.text) for each in own),
            cause=f"it says: {own[0].text}" if own else "no line of its own says why",
            fix=(
                "its devices, drivers and helpers (a daemon, a mounted folder) must be in the "
                "container, and its version must fit NCCL's; NCCL_DEBUG=INFO with "
                "NCCL_DEBUG_SUBSYS=INIT,NET shows more. Where TCP is meant: NCCL_NET=Socket"
            ),
            confidence=Confidence.LIKELY if own else Confidence.POSSIBLE,
        ),
        quotes=frozenset(each.place for each in own),
    )


def _is_of_plugin(warning: UnknownWarning, failed: Collection[Speaker]) -> bool:
    return warning.speaker in failed and subject_of(warning.origin) == EXTERNAL


def plugin_unloadable(reading: LogReading) -> Iterator[Conclusion]:
    """A plugin's library is there, and the linker refuses it: NCCL goes on without it."""
    processes = [p for p in reading.processes.values() if p.unloadable_plugins]
    if not processes:
        return
    name, why = min(processes[0].unloadable_plugins.items())
    old = _TOO_OLD.search(why)
    chosen = named(process.network for process in processes if process.network)
    instead = f"; NCCL took its own network `{chosen}`" if chosen else ""
    cause = f"the linker says: {why}"
    if old is not None:
        cause = f"{old['library']} is too old for it: version {old['version']} is not found"
    severity = Severity.INFO if is_one_node(reading) else Severity.WARNING
    is_end = any(seen.rule.id == _NO_NETWORK for seen in reading.seen)
    yield Conclusion(
        place=first_place(processes),
        finding=Finding(
            rule="plugin-load-failed",
            severity=Severity.ERROR if is_end else severity,
            symptom=f"the network plugin {name} is there and can't be loaded{instead}",
            evidence=(why,),
            cause=cause,
            fix=PLUGIN_FIX,
            confidence=Confidence.CERTAIN,
        ),
        explains=frozenset({_NO_NETWORK}),
        is_cause=is_end,
    )


def plugin_missing(reading: LogReading) -> Iterator[Conclusion]:
    """A plugin was asked for, and could not be loaded. That NCCL looks for one is usual."""
    lost = [p for p in reading.processes.values() if p.missing_plugins and p.plugin is None]
    said = variable(lost, "NCCL_NET_PLUGIN")
    asked = said or next((p.wanted_plugin for p in lost if p.wanted_plugin), None)
    if asked is None or asked.casefold() == "none":
        return
    names = sorted({name for process in lost for name in process.missing_plugins if asked in name})
    if not names:
        return
    chosen = named(process.network for process in lost if process.network)
    yield Conclusion(
        place=first_place(lost),
        finding=Finding(
            rule="plugin-missing",
            severity=Severity.ERROR,
            symptom=f"the network plugin `{asked}` could not be loaded",
            evidence=(
                *((f"NCCL_NET_PLUGIN={said}",) if said else ()),
                f"looked for: {names[0]}",
            ),
            cause=(
                "it is not in the image or not in LD_LIBRARY_PATH, or a library that it needs is "
                "missing" + (f"; NCCL took its own network `{chosen}`" if chosen else "")
            ),
            fix="`ldd` of the plugin's file inside the container names what is missing",
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({"plugin_missing"}),
    )
