"""Nothing of ours crosses a network while something is measured on it."""

from broadgauge.agent.on_host import TimedPart
from broadgauge.messages.agent import Marked, RankExited, RankSaid, RanksWait
from broadgauge.messages.rank import COUNTED_STEPS


def said(kind: str) -> RankSaid:
    return RankSaid(rank=0, message={"type": kind})


def test_words_of_ranks_wait_for_the_end_of_a_timed_part() -> None:
    part = TimedPart(goes_on=True)
    assert part.hold(said("block"))
    assert part.hold(said("phase"))
    assert not part.hold(RanksWait(label="steps:end"))
    assert part.let_go() == [said("block"), said("phase")]
    assert not part.goes_on


def test_what_is_told_of_a_beginning_does_not_end_it() -> None:
    part = TimedPart(goes_on=True)
    begun = Marked(label="steps:begin", time_s=0.0, nodes=())
    assert part.hold(begun)
    assert part.hold(said("block"))
    assert part.goes_on
    assert not part.hold(Marked(label="steps:end", time_s=1.0, nodes=()))
    assert part.let_go() == [begun, said("block")]


def test_failures_do_not_wait() -> None:
    part = TimedPart(goes_on=True)
    assert not part.hold(said("failed"))
    assert not part.hold(RankExited(rank=0, exit_code=1, signal=None, was_told_to=False))


def test_nothing_waits_outside_of_timed_parts() -> None:
    assert not TimedPart().hold(said("block"))


def test_a_commands_readings_pass_at_once_and_end_nothing() -> None:
    """Held until the command ends, all readings were of its end, and no byte between them."""
    part = TimedPart(goes_on=True)
    assert part.passes(said("count"))
    assert part.passes(Marked(label=f"{COUNTED_STEPS}12", time_s=1.0, nodes=()))
    assert part.goes_on
    assert not part.passes(said("block"))
    assert not part.passes(Marked(label="command:end", time_s=1.0, nodes=()))
