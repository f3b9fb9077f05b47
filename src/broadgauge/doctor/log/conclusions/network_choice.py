"""Which network did NCCL choose, and why? Was RDMA meant, and is it off?"""

from collections.abc import Iterator, Sequence

from broadgauge.doctor.log.conclusions.adapter_kinds import EFA, adapters_words, kind_of
from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.conclusions.data_centre import data_centre_signs
from broadgauge.doctor.log.conclusions.why_sockets import why_sockets
from broadgauge.doctor.log.facts import LogReading, ProcessFacts
from broadgauge.doctor.log.job import (
    OWN_RDMA,
    first_place,
    has_several_nodes,
    is_on,
    is_one_node,
    networks,
    uses_sockets,
    variable,
)
from broadgauge.doctor.log.speakers import named, who
from broadgauge.specs.records.record import Confidence, Finding, Severity

RDMA_MISSING = "rdma-missing"
"""Not told where the user says that TCP is meant."""


_OF_VERBS = frozenset(
    {"ib-call-failed", "ib-modify-qp", "ib-modify-qp-older", "ib-completion-named"}
)
"""Rules of what EFA's verbs refuse NCCL's own network: queue pairs of kind RC, which it lacks."""


def network_chosen(reading: LogReading) -> Iterator[Conclusion]:
    """A fact for each network that processes chose."""
    for network, processes in networks(reading).items():
        ranks = who(reading, (process.speaker for process in processes))
        yield Conclusion(
            place=first_place(processes),
            explains=_told_by_it(reading, processes),
            finding=Finding(
                rule="network-chosen-why",
                severity=Severity.INFO,
                symptom=f"{ranks} chose the network `{network}`",
                evidence=_what(processes),
                cause=_why(reading, network, processes),
                confidence=_confidence(reading, processes),
            ),
        )


def _told_by_it(reading: LogReading, processes: Sequence[ProcessFacts]) -> frozenset[str]:
    """Facts that are the reason for sockets; a warning is told by itself, too."""
    if not uses_sockets(processes[0]):
        return frozenset()
    reasons = why_sockets(reading, processes).explains
    rules = {seen.rule.id: seen.rule for seen in reading.seen}
    return frozenset(
        name
        for name in reasons
        if all(text.severity is Severity.INFO for text in rules[name].findings)
    )


def _what(processes: Sequence[ProcessFacts]) -> tuple[str, ...]:
    """Over which interfaces and adapters."""
    words: list[str] = []
    adapters = {name: each for p in processes for name, each in p.adapters.items()}
    if adapters:
        words.append(f"adapters: {adapters_words(adapters.values())}")
    interfaces = {name for process in processes for name in process.interfaces}
    if interfaces:
        words.append(f"interfaces: {named(interfaces)}")
    bootstrap = {process.bootstrap for process in processes if process.bootstrap}
    if bootstrap:
        words.append(f"bootstrap over {named(bootstrap)}")
    return tuple(words)


def _why(reading: LogReading, network: str, processes: Sequence[ProcessFacts]) -> str:
    if uses_sockets(processes[0]):
        return why_sockets(reading, processes).cause
    plugin = next((process.plugin for process in processes if process.plugin), None)
    asked = variable(processes, "NCCL_NET")
    if asked is not None and asked.casefold() == network.casefold():
        return f"NCCL_NET={asked} asks for it"
    if network.casefold() == OWN_RDMA:
        return "NCCL takes its own RDMA network before sockets wherever it finds an adapter"
    if plugin is not None:
        return f"the external plugin `{plugin}` offers it, and plugins come before NCCL's own"
    return "an external plugin offers it, and plugins come before NCCL's own"


def _confidence(reading: LogReading, processes: Sequence[ProcessFacts]) -> Confidence:
    """Certain where a variable or a line says it."""
    if uses_sockets(processes[0]):
        return why_sockets(reading, processes).confidence
    asked = variable(processes, "NCCL_NET")
    return Confidence.LIKELY if asked is None else Confidence.CERTAIN


def rdma_not_used(reading: LogReading) -> Iterator[Conclusion]:
    """Adapters were listed or asked for, and sockets carry the job between nodes."""
    if is_one_node(reading):
        return
    on_sockets = [process for process in reading.processes.values() if uses_sockets(process)]
    signs = _meant(on_sockets)
    if not on_sockets or not signs:
        return
    why = why_sockets(reading, on_sockets)
    severity = Severity.WARNING if why.is_asked_for and not _asks(on_sockets) else Severity.ERROR
    yield Conclusion(
        place=why.lines[0][0] if why.lines else first_place(on_sockets),
        finding=Finding(
            rule="rdma-not-used",
            severity=severity,
            symptom=(
                f"RDMA was meant, and {who(reading, (p.speaker for p in on_sockets))} "
                "use TCP sockets"
            ),
            evidence=(*signs, *quoted(why.lines)),
            cause=why.cause,
            fix=why.fix,
            confidence=why.confidence,
        ),
        explains=why.explains,
    )


def _asks(processes: Sequence[ProcessFacts]) -> bool:
    hca = variable(processes, "NCCL_IB_HCA")
    return bool(hca) or is_on(variable(processes, "WITH_RDMA"))


def _meant(processes: Sequence[ProcessFacts]) -> tuple[str, ...]:
    """By which signs RDMA was meant; empty: none."""
    signs: list[str] = []
    for name in ("NCCL_IB_HCA", "WITH_RDMA", "NCCL_NET"):
        value = variable(processes, name)
        if value and value != "0" and not (name == "NCCL_NET" and value.casefold() != OWN_RDMA):
            signs.append(f"{name}={value}")
    adapters = {name: each for p in processes for name, each in p.adapters.items()}
    if adapters:
        signs.append(f"adapters listed: {adapters_words(adapters.values())}")
    return tuple(signs)


def sockets_for_want(reading: LogReading) -> Iterator[Conclusion]:
    """GPUs of data centres on several hosts, and sockets for want of a library, an adapter or a
    plugin: nobody asked for RDMA in so many words, and hardly anybody means to go without.
    """
    on_sockets = [process for process in reading.processes.values() if uses_sockets(process)]
    hosts = {process.speaker.host for process in on_sockets}
    if len(hosts) < 2 or not has_several_nodes(reading) or _meant(on_sockets):
        return
    signs = data_centre_signs(reading)
    why = why_sockets(reading, on_sockets)
    if not signs or why.is_asked_for or why.confidence is Confidence.POSSIBLE:
        return
    yield Conclusion(
        place=why.lines[0][0] if why.lines else first_place(on_sockets),
        finding=Finding(
            rule=RDMA_MISSING,
            severity=Severity.WARNING,
            symptom=(
                f"RDMA is off: {who(reading, (p.speaker for p in on_sockets))} on {len(hosts)} "
                "hosts use TCP sockets, where such GPUs usually have NICs that do RDMA"
            ),
            evidence=(*signs, *quoted(why.lines)),
            cause=why.cause,
            fix=f"{why.fix}. Where TCP is meant: `--expect tcp`",
            confidence=why.confidence,
        ),
        explains=why.explains,
    )


def other_adapters(reading: LogReading) -> Iterator[Conclusion]:
    """What NCCL calls IB may be something else: said as what it is."""
    users = [p for n, ps in networks(reading).items() if n.casefold() == OWN_RDMA for p in ps]
    adapters = {name: process for process in reversed(users) for name in process.adapters}
    by_words = {kind.words: (kind, name) for name in adapters if (kind := kind_of(name))}
    for kind, name in by_words.values():
        is_slow = kind.is_software and has_several_nodes(reading)
        is_end = kind.words == EFA and any(seen.rule.id in _OF_VERBS for seen in reading.seen)
        yield Conclusion(
            place=adapters[name].place,
            finding=Finding(
                rule="network-other-hca",
                severity=(
                    Severity.ERROR if is_end else Severity.WARNING if is_slow else Severity.INFO
                ),
                symptom=f"NCCL's network IB runs over {kind.words}, not over InfiniBand",
                evidence=(f"adapter {name}",),
                cause="NET/IB takes every adapter that has verbs, whatever its wire",
                fix=kind.fix,
                confidence=Confidence.LIKELY,
            ),
            explains=_OF_VERBS if is_end else frozenset(),
            is_cause=is_end,
        )
