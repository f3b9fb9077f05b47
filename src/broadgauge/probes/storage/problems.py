"""What went wrong with a storage, in a sentence with the place, the value and a hint?"""

import asyncio
import concurrent.futures
import errno
import sys

from broadgauge.probes.storage.limits import HangsError
from broadgauge.probes.storage.objects import masked
from broadgauge.probes.trial import RefusedError

_HINTS = {
    errno.ENOSPC: ("is full", "free some space, or make the workload's sizes smaller"),
    errno.EDQUOT: ("is over its quota", "raise it, or make the workload's sizes smaller"),
    errno.EFBIG: ("takes no file as large", "make the workload's sizes smaller"),
    errno.EROFS: ("is read-only", "mount it for writing, or name another folder"),
    errno.EACCES: (
        "refuses this user",
        "let this user write there; of a bucket: check the credentials in the environment",
    ),
    errno.EPERM: (
        "refuses this user",
        "let this user write there; of a bucket: check the credentials in the environment",
    ),
    errno.ENOENT: ("has no such file", "check the path or the bucket, on every node"),
    errno.EBUSY: ("asks to slow down", "measure with fewer ranks, or ask for a higher limit"),
    errno.ESTALE: ("is mounted no more", "mount it again"),
    errno.ENOTCONN: ("is mounted no more", "its mount daemon has ended: mount it again"),
    errno.ESPIPE: ("can't be written out of order", "a mount without a cache: use another format"),
    errno.EIO: ("failed to read or write", "look at the kernel's log, or the mount daemon's"),
}


class LoaderError(Exception):
    """A worker of the data loader ended."""


def storage_errors() -> tuple[type[BaseException], ...]:
    """What may come of a storage, or carry it."""
    found: list[type[BaseException]] = [
        OSError,
        EOFError,
        RefusedError,
        HangsError,
        LoaderError,
        asyncio.TimeoutError,
        concurrent.futures.TimeoutError,
    ]
    for module, names in (
        ("botocore.exceptions", ("BotoCoreError", "ClientError")),
        ("aiohttp", ("ClientError",)),
        ("fsspec.exceptions", ("FSTimeoutError",)),
        ("safetensors", ("SafetensorError",)),
        ("torch.distributed.checkpoint.api", ("CheckpointException",)),
    ):
        loaded = sys.modules.get(module)
        found += [getattr(loaded, name) for name in names if hasattr(loaded, name)]
    return tuple(found)


def possible_errors() -> tuple[type[BaseException], ...]:
    """Asked when one was raised, since what may be raised depends on what was imported."""
    return (*storage_errors(), RuntimeError)


def is_of_storage(error: BaseException) -> bool:
    """Otherwise it is a defect or a lost rank, and ends the trial. torch's writer hides what the
    storage said where the stream is not ours."""
    cause = first_cause(error)
    hides = isinstance(cause, RuntimeError) and "inline_container" in str(cause)
    return hides or isinstance(cause, storage_errors())


def describe(error: BaseException, label: str, what: str) -> str:
    """`label`: of the place; `what` was done."""
    cause = first_cause(error)
    if isinstance(cause, (RefusedError, HangsError)):
        return masked(str(cause))
    number = getattr(cause, "errno", None)
    said = str(cause).splitlines()[0][:300] if str(cause) else type(cause).__name__
    if number in _HINTS:
        problem, hint = _HINTS[number]
        return masked(f"{label} {problem} ({what}): {said}\nhint: {hint}")
    return masked(f"{label}, {what}: {type(cause).__name__}: {said}")


def first_cause(error: BaseException) -> BaseException:
    """Of a distributed checkpoint, what one of the ranks met."""
    failures = getattr(error, "failures", None)
    if isinstance(failures, dict) and failures:
        wrapped = failures[min(failures)]
        return first_cause(wrapped[0] if isinstance(wrapped, tuple) else wrapped)
    return error
