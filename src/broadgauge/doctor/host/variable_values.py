"""Can the values be? NCCL takes what it does not understand for something else, and says nothing.

Source: NVIDIA/nccl 2.18 to 2.30, src/misc/param.cc (ncclLoadParam: strtoll), src/debug.cc,
src/graph/paths.cc (ncclGetLevel: case matters), src/graph/tuning.cc (parseList), src/init.cc.
"""

import re
from collections.abc import Iterator

from broadgauge.catalog.nccl_variables import OF_NCCL, NcclVariable, find_nccl_variable
from broadgauge.doctor.host.variable_evidence import Variables, whole_number
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.near_words import did_you_mean

_LISTS = {
    "NCCL_ALGO": (
        "Tree",
        "Ring",
        "CollNet",
        "CollNetDirect",
        "CollNetChain",
        "NVLS",
        "NVLSTree",
        "PAT",
    ),
    "NCCL_PROTO": ("LL", "LL128", "Simple"),
    "NCCL_DEBUG_SUBSYS": (
        *("INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "ALLOC_HOST"),
        *("CALL", "PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "DESTROY", "ALL"),
    ),
}
_BEGIN = re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]+|\d+)")
_OLD_LEVEL = "NODE"
"""nvidia-smi's word; no release of NCCL after 2.5.7 compares with it."""
MOST_SOCKETS, MOST_SOCKET_THREADS = 64, 16


def value_findings(asked: Variables) -> Iterator[Finding]:
    """Of each variable by itself, then of those that limit each other."""
    for name in sorted(asked.values):
        entry, value = find_nccl_variable(name), asked.values[name]
        if entry is None or entry.reader != OF_NCCL or not value:
            continue
        if name in _LISTS:
            yield from _of_list(asked, name)
        elif entry.kind == "integer":
            yield from _of_number(asked, name)
        elif entry.kind in ("word", "level"):
            yield from _of_words(asked, entry)
    yield from _sockets(asked)
    yield from _channels(asked)


def _finding(
    asked: Variables, names: tuple[str, ...], symptom: str, cause: str, fix: str
) -> Finding:
    return Finding(
        rule="host-variable-value",
        severity=Severity.WARNING,
        symptom=symptom,
        evidence=(asked.evidence(*names),),
        cause=cause,
        fix=fix,
        confidence=Confidence.CERTAIN,
    )


def _of_number(asked: Variables, name: str) -> Iterator[Finding]:
    """`yes` is 0, `4M` is 4."""
    value = asked.values[name]
    if whole_number(value) is not None:
        return
    begin = _BEGIN.match(value)
    taken = whole_number(begin.group()) if begin else 0
    yield _finding(
        asked,
        (name,),
        f"{name} is a number, and NCCL takes this value for {taken}",
        "it reads the digits at the begin, and no digits as 0",
        f"a whole number without a unit: {name}=1" if taken == 0 else "a number without a unit",
    )


def _of_words(asked: Variables, entry: NcclVariable) -> Iterator[Finding]:
    value = asked.values[entry.name].strip()
    if entry.kind == "level":
        if value in entry.values or value[:1].isdigit():
            return
        told = "NCCL compares it letter by letter, and ignores what it does not know"
    else:
        if value.upper() in entry.values:
            return
        told = "NCCL ignores a word that it does not know"
    known = ", ".join(entry.values)
    hint = did_you_mean(value.upper(), entry.values)
    if value == _OLD_LEVEL:
        hint = "PHB: NODE is nvidia-smi's word, which only NCCL up to 2.5 reads"
    yield _finding(
        asked,
        (entry.name,),
        f"{entry.name} has a value that is none: it does nothing",
        f"{told}: it is one of {known}",
        hint or f"one of {known}",
    )


def _of_list(asked: Variables, name: str) -> Iterator[Finding]:
    """`ring,tree`, `^LL128`, and from 2.24 on `ring;allreduce:tree`."""
    known = _LISTS[name]
    upper = {word.upper() for word in known}
    for part in asked.values[name].split(";"):
        for word in part.rpartition(":")[2].split(","):
            bare = word.strip().removeprefix("^")
            if not bare or bare.upper() in upper or whole_number(bare) is not None:
                continue
            near = did_you_mean(bare.upper(), upper)
            yield _finding(
                asked,
                (name,),
                f"{name} names {bare!r}, which NCCL does not know",
                "older releases leave it out, newer ones refuse to start",
                near or f"of {', '.join(known)}",
            )


def _sockets(asked: Variables) -> Iterator[Finding]:
    """Source: NVIDIA/nccl, src/transport/net_socket.cc, MAX_SOCKETS and MAX_THREADS."""
    names = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    threads, sockets = (asked.number(name) for name in names)
    if threads is not None and threads > MOST_SOCKET_THREADS:
        what = f"{threads} socket threads are more than the {MOST_SOCKET_THREADS} that NCCL takes"
    elif threads is not None and sockets is not None and threads * sockets > MOST_SOCKETS:
        what = f"{threads} x {sockets} sockets are more than the {MOST_SOCKETS} that NCCL takes"
    else:
        return
    yield _finding(
        asked, names, what, "NCCL lowers them by itself", "16 threads, 64 sockets in all, at most"
    )


def _channels(asked: Variables) -> Iterator[Finding]:
    for least, most in (
        ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"),
        ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"),
    ):
        low, high = asked.number(least), asked.number(most)
        if low is not None and high is not None and low > high:
            yield _finding(
                asked,
                (least, most),
                f"{least} is above {most}",
                "the two can't both hold",
                "the same value in both, or one of them",
            )
