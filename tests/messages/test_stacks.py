"""Is a rank's own line found, and whether it waits for others?"""

from textwrap import dedent

import pytest

from broadgauge.messages.stacks import (
    Activity,
    Frame,
    RankStack,
    activity_of,
    last_dump,
    last_traceback,
    own_frame,
)

TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
DUMP = f"""\
a line of the user's
Current thread 0x00007f5b5bdc4b80 (most recent call first):
  File "/old/dump.py", line 1 in earlier
more of the user's
Thread 0x00007f5b5bdc4b81 (most recent call first):
  File "/home/me/loader.py", line 3 in read
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Thread 0x00007f5b5bdc4b80 [python] (most recent call first):
  File "{TORCH}/distributed/distributed_c10d.py", line 3075 in all_reduce
  File "{TORCH}/distributed/c10d_logger.py", line 83 in wrapper
  File "/home/me/train.py", line 17 in train_step
  File "/home/me/train.py", line 24 in <module>
"""


def frames(*places: str) -> tuple[Frame, ...]:
    return tuple(Frame(file=place, line=1, function="f") for place in places)


def test_the_main_threads_frames_of_the_last_dump() -> None:
    found = last_dump(DUMP)
    assert [frame.function for frame in found] == [
        *("all_reduce", "wrapper", "train_step", "<module>"),
    ]
    own = own_frame(found)
    assert own is not None
    assert own.words("/home/me") == "train.py:17 in train_step"
    stack = RankStack(rank=0, frames=found, folder="/home/me")
    assert (stack.activity, stack.operation) == (Activity.COMMUNICATION, "all_reduce")
    assert last_dump("no dump\n") == ()


@pytest.mark.parametrize(
    ("innermost", "is_own"),
    [
        ("/home/me/train.py", True),
        ("train.py", True),
        ("/home/broadgauge/.venv/lib/python3.12/site-packages/torch/nn/module.py", False),
        ("/work/src/broadgauge/probes/training/trainer.py", True),
        ("/opt/lib/python3.11/site-packages/broadgauge/probes/worker.py", True),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", False),
        ("/usr/lib64/python3.13t/queue.py", False),
        ("<frozen runpy>", False),
        ("<string>", False),
    ],
)
def test_what_is_the_users_own(innermost: str, is_own: bool) -> None:
    assert (own_frame(frames(innermost)) is not None) is is_own


@pytest.mark.parametrize(
    ("stack", "activity"),
    [
        (frames("/home/me/train.py"), Activity.ELSEWHERE),
        (frames(f"{TORCH}/nn/modules/linear.py", "/home/me/train.py"), Activity.ELSEWHERE),
        (frames("/home/me/a.py", f"{TORCH}/distributed/x.py"), Activity.ELSEWHERE),
        (frames(f"{TORCH}/distributed/x.py", "/home/me/a.py"), Activity.COMMUNICATION),
        (
            (Frame(file=f"{TORCH}/autograd/graph.py", line=1, function="_engine_run_backward"),),
            Activity.BACKWARD,
        ),
        (
            (Frame(file=f"{TORCH}/cuda/__init__.py", line=1, function="synchronize"),),
            Activity.DEVICE,
        ),
    ],
)
def test_what_a_stack_shows_a_rank_to_do(stack: tuple[Frame, ...], activity: Activity) -> None:
    assert activity_of(stack) is activity


@pytest.mark.parametrize("prefix", ["", "[rank1]: "])
def test_the_last_traceback_whole_with_its_exception(prefix: str) -> None:
    text = dedent(
        """\
        step took 1 s
        Traceback (most recent call last):
          File "/home/me/train.py", line 30, in <module>
            main()
          File "/home/me/train.py", line 9, in step
            raise ValueError("no such key")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        ValueError: no such key
        """
    )
    lines = [line if i == 0 else prefix + line for i, line in enumerate(text.splitlines())]
    raised = last_traceback([*lines, "what comes after it"])
    assert raised is not None
    assert raised.error == "ValueError: no such key"
    assert [frame.line for frame in raised.frames] == [9, 30]
    assert raised.lines == tuple(lines[1:])


def test_a_traceback_without_its_end_is_none() -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    g()"]
    assert last_traceback(lines) is None
    assert last_traceback([]) is None
