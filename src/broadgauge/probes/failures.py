"""What kind of failure is this exception, in a sentence for the record?"""

import errno
import traceback

import torch

from broadgauge.messages.rank import Failed
from broadgauge.messages.stacks import Frame, own_frame
from broadgauge.messages.vocabulary import ErrorKind
from broadgauge.probes.trial import RefusedError

MAX_MESSAGE_CHARACTERS = 1000
_NO_MEMORY = ("can't allocate memory", "out of memory", "cannot allocate memory")
_TIMED_OUT = ("timed out", "timeout")


def describe_failure(trial_id: str, error: BaseException) -> Failed:
    """The traceback is in the rank's log; the record gets the kind and the first lines."""
    text = str(error).strip()
    kind = _kind_of(error, text.lower())
    if kind is ErrorKind.REFUSED and not isinstance(error, RefusedError):
        text = f"out of memory: {text.splitlines()[0] if text else type(error).__name__}"
    elif not isinstance(error, RefusedError):
        text = f"{type(error).__name__}: {text}"
    frame = None if kind is ErrorKind.REFUSED else own_line(error)
    if frame is not None and kind is ErrorKind.CRASHED:
        text = f"crashed at {frame}: {text}"
    return Failed(trial_id=trial_id, kind=kind, message=text[:MAX_MESSAGE_CHARACTERS], frame=frame)


def own_line(error: BaseException) -> str | None:
    """The innermost line that is of no library: `…/training/trainer.py:104 in step`."""
    called = reversed(traceback.extract_tb(error.__traceback__))
    frames = [Frame(file=f.filename, line=f.lineno or 0, function=f.name) for f in called]
    frame = own_frame(frames)
    return None if frame is None else frame.words()


def _kind_of(error: BaseException, text: str) -> ErrorKind:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ErrorKind.NO_SPACE
    if isinstance(error, RefusedError | MemoryError | torch.OutOfMemoryError):
        return ErrorKind.REFUSED
    if isinstance(error, RuntimeError) and any(words in text for words in _NO_MEMORY):
        return ErrorKind.REFUSED
    if any(words in text for words in _TIMED_OUT):
        return ErrorKind.HUNG
    return ErrorKind.CRASHED
