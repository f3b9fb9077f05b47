"""How is doctor's first line printed: is RDMA on, and by what is that known?"""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from broadgauge.doctor.answer import State, Subject, SubjectAnswer, first_line, shown
from broadgauge.report.doctor.terminal import print_part
from broadgauge.report.words.printable import printable

_TITLES: Mapping[Subject, str] = {
    Subject.RDMA: "RDMA",
    Subject.GDR: "GPUDirect",
    Subject.NVLINK: "NVLink",
    Subject.TCP: "TCP",
}
_MOST_LINES = 2
"""Of evidence for one answer; --json has all."""


def print_answers(
    answers: Mapping[Subject, SubjectAnswer],
    console: Console,
    expected: Iterable[Subject] = (),
    *,
    is_machine: bool = False,
) -> None:
    """The first line, then why each answer is what it is."""
    expected = tuple(expected)
    print_first_line(answers, console, expected, is_machine=is_machine)
    print_reasons(answers, console, expected)


def print_first_line(
    answers: Mapping[Subject, SubjectAnswer],
    console: Console,
    expected: Iterable[Subject] = (),
    *,
    is_machine: bool = False,
) -> None:
    """`RDMA: on · GPUDirect RDMA: unknown`."""
    console.print()
    line = first_line(answers, tuple(expected), is_machine=is_machine)
    console.print(Text(line, style="bold"))


def print_reasons(
    answers: Mapping[Subject, SubjectAnswer], console: Console, expected: Iterable[Subject] = ()
) -> None:
    """Why each answer is what it is, with evidence."""
    told: set[str] = set()
    for question in shown(answers, tuple(expected)):
        answer = answers[question]
        print_part(_TITLES[question], printable(answer.why), console)
        new = [each for each in answer.evidence if each not in told]
        if answer.state is not State.NOT_NEEDED:
            for evidence in new[:_MOST_LINES]:
                print_part("", printable(evidence), console, "dim")
        told.update(new)
