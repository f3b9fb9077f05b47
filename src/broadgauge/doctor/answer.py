"""What does doctor's first line say, and what if the contrary was expected?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from broadgauge.specs.records.record import Confidence, Finding, Severity


class Subject(StrEnum):
    """That the first line answers, or `--expect` asks."""

    RDMA = "rdma"
    """Do the NICs move what goes between nodes, without the host's TCP?"""
    GDR = "gdr"
    """GPUDirect RDMA: do they read and write the GPUs' memory?"""
    NVLINK = "nvlink"
    """Are the GPUs of a node joined by NVLink, and is it used?"""
    TCP = "tcp"
    """Do TCP sockets carry what goes between nodes?"""


NAMES: Mapping[Subject, str] = {
    Subject.RDMA: "RDMA",
    Subject.GDR: "GPUDirect RDMA",
    Subject.NVLINK: "NVLink",
    Subject.TCP: "TCP sockets",
}
"""For people."""


class State(StrEnum):
    """Of what is asked."""

    ON = "on"
    PART = "in part"
    OFF = "off"
    NOT_NEEDED = "not needed"
    """Nothing goes where it would be used: all ranks are on one node."""
    UNKNOWN = "unknown"
    """The log, or the machine, does not say."""


@dataclass(frozen=True, slots=True)
class SubjectAnswer:
    """To one question."""

    state: State
    why: str
    """`over mlx5_0:1 (InfiniBand)`, `TCP sockets carry the job over eth0`."""
    evidence: tuple[str, ...] = ()
    """Lines, files, and who said what."""


_FIXES: Mapping[Subject, str] = {
    Subject.RDMA: "see the findings of the network; `broadgauge doctor --host` on a node tells "
    "whether it has adapters that a process can open",
    Subject.GDR: "see the findings of GPUDirect RDMA; `broadgauge doctor --host` looks for "
    "nvidia-peermem and DMA-BUF",
    Subject.NVLINK: "`nvidia-smi topo -m` and `nvidia-smi nvlink -s` on the node; see the "
    "findings of the ways between GPUs",
    Subject.TCP: "NCCL_NET=Socket asks for TCP sockets",
}


def expectation_findings(
    answers: Mapping[Subject, SubjectAnswer], expected: Iterable[Subject]
) -> tuple[Finding, ...]:
    """An error for each question whose answer is not `on`; a note where it is unknown."""
    found = []
    for question in dict.fromkeys(expected):
        answer = answers[question]
        if answer.state is State.ON:
            continue
        is_unknown = answer.state is State.UNKNOWN
        found.append(
            Finding(
                rule=f"expected-{question.value}",
                severity=Severity.INFO if is_unknown else Severity.ERROR,
                symptom=f"{NAMES[question]} was expected, and is {_words(answer.state)}",
                evidence=answer.evidence,
                cause=answer.why,
                fix=_FIXES[question],
                confidence=None if is_unknown else Confidence.CERTAIN,
            )
        )
    return tuple(found)


def _words(state: State) -> str:
    return "not used" if state is State.NOT_NEEDED else state.value


def is_unanswered(answers: Mapping[Subject, SubjectAnswer], expected: Iterable[Subject]) -> bool:
    """Is something expected that nobody can tell? A health check must not pass then."""
    return any(answers[question].state is State.UNKNOWN for question in expected)


_OF_MACHINE: Mapping[State, str] = {State.ON: "can be used here", State.OFF: "can't be used here"}


def shown(
    answers: Mapping[Subject, SubjectAnswer], expected: Iterable[Subject] = ()
) -> tuple[Subject, ...]:
    """What the first line tells: RDMA and GPUDirect RDMA, NVLink where it is known, and whatever
    is expected."""
    asked = set(expected)
    if answers[Subject.NVLINK].state is not State.UNKNOWN:
        asked.add(Subject.NVLINK)
    return tuple(each for each in Subject if each in {Subject.RDMA, Subject.GDR, *asked})


def first_line(
    answers: Mapping[Subject, SubjectAnswer],
    expected: Iterable[Subject] = (),
    *,
    is_machine: bool = False,
) -> str:
    """`RDMA: on · GPUDirect RDMA: on`. `is_machine`: of what a job here could use."""
    words = _OF_MACHINE if is_machine else {}
    return " · ".join(
        f"{NAMES[each]}: {words.get(answers[each].state, answers[each].state.value)}"
        for each in shown(answers, expected)
    )
