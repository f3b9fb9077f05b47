"""Is a hang told from a pause, by a clock that is made up?"""

import pytest

from broadgauge.messages.stacks import Frame, RankStack
from broadgauge.probes.stall import LOOKS, PATIENCE, Pace, StallSample, StallWatch

C10D = "/opt/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def stack(rank: int, line: int, *, waits: bool = False) -> RankStack:
    own = Frame(file="/home/me/train.py", line=line, function="step")
    call = (Frame(file=C10D, line=1, function="all_reduce"),) if waits else ()
    return RankStack(rank=rank, frames=(*call, own))


def watch_of(num_samples: int = 10, gap_s: float = 1.0, stall_s: float = 60.0) -> StallWatch:
    """Has seen so many samples, the last at 0 s."""
    watch = StallWatch(pace=Pace(stall_s), output_s=0.0)
    for n in range(num_samples):
        watch.sample((n - num_samples + 1) * gap_s)
    return watch


def told_at(
    watch: StallWatch, stacks_at, cpu_ratio: float = 0.0, until_s: int = 1000, num_ranks: int = 0
):
    """Seconds after the last sample at which a hang is told; None: never."""
    for now_s in range(until_s):
        if watch.wants_look(now_s):
            stacks = stacks_at(now_s)
            cpu_s = tuple(cpu_ratio * now_s for _ in stacks)
            num = num_ranks or len(stacks)
            if watch.look(StallSample(at_s=now_s, num_ranks=num, stacks=stacks, cpu_s=cpu_s)):
                return now_s
    return None


def hang(_now_s):
    return (stack(0, 40, waits=True), stack(1, 12))


def test_a_hang_is_told_soon_after_the_limit():
    found = told_at(watch_of(), hang)
    assert found is not None
    assert 60 <= found <= 60 * (1 + 0.1 * LOOKS)


@pytest.mark.parametrize(("gap_s", "least_s"), [(0.1, 60), (1, 60), (5, 100), (30, 600)])
def test_the_limit_is_of_the_jobs_own_pace_and_never_below_what_was_asked(gap_s, least_s):
    watch = watch_of(gap_s=gap_s)
    assert watch.pace.limit_s() == pytest.approx(least_s)


def test_a_pause_as_long_as_one_before_is_none():
    watch = watch_of()
    watch.sample(50.0)  # an evaluation
    for n in range(51, 60):
        watch.sample(float(n))
    assert watch.pace.limit_s() == pytest.approx(150)


def test_stacks_that_change_are_no_hang():
    def at_work(now_s):
        return (stack(0, 40 + int(now_s) % 7), stack(1, 40, waits=True))

    assert told_at(watch_of(), at_work) is None


def test_one_that_computes_where_it_stands_has_longer():
    found = told_at(watch_of(), hang, cpu_ratio=1.0)
    assert found is not None
    assert found >= PATIENCE * 60


def test_where_no_stack_is_known_it_takes_longer():
    found = told_at(watch_of(), lambda _: (RankStack(rank=0, frames=()),))
    assert found is not None
    assert found >= PATIENCE * 60
    assert told_at(watch_of(), hang, num_ranks=3) == found, "one has ended"


def test_whoever_writes_is_alive():
    watch = watch_of()
    for now_s in range(0, 300, 20):
        assert not watch.wants_look(now_s)
        watch.output(now_s)


def test_nothing_is_told_before_the_first_sample_and_later_after_it_alone():
    assert told_at(watch_of(0), hang) is None
    only_one = told_at(watch_of(1), hang)
    assert only_one is not None
    assert only_one >= 180
    assert told_at(watch_of(2), hang) < 100


def test_samples_that_are_read_together_share_the_time_since_the_last():
    together, apart = Pace(60), Pace(60)
    for pace, count in ((together, 5), (apart, 1)):
        pace.comes(0.0)
        for n in range(1, 20 // count + 1):
            pace.comes(n * count * 10.0, count)
    assert together.usual_s == apart.usual_s == 10
    assert together.limit_s() == apart.limit_s() == 200
