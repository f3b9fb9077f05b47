"""Whose is the process in which torch saves in the background, and when does it end?

torch starts one of each rank at the first save, keeps it for the next ones, and leaves its end to
the rank's own. A rank has more trials: here it ends with the trial, also where that fails. What is
staged goes there through shared memory, which is an open file for each tensor.
Source: torch 2.11, torch/distributed/checkpoint/_async_process_executor.py.
"""

import multiprocessing
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

from torch.distributed.checkpoint import _async_process_executor as executor

from broadgauge.messages.storage_memory import SAVES_HELD_BY_PROCESS
from broadgauge.probes.trial import RefusedError

OTHER_FILES = 512
"""That a rank and its process may have open beside those: libraries, pipes, sockets."""


class SavingProcess:
    """Of this rank, from its first save to `close`."""

    def __init__(self, tensors_count: int) -> None:
        """Raises RefusedError where so many files may not be open."""
        self._limit = _allow_open_files(SAVES_HELD_BY_PROCESS * tensors_count + OTHER_FILES)
        self._others = set(multiprocessing.active_children())

    def close(self) -> None:
        """At once, whatever it does. Without it torch starts another at the next save."""
        for process in self._alive():
            process.kill()
            process.join()
        executor._CHECKPOINT_PROCESS = None
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limit)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While it is to save. Of one that is gone torch says a broken pipe: raises RuntimeError
        with what happened."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            if executor._CHECKPOINT_PROCESS is None or self._alive():
                raise
            raise RuntimeError(
                f"the process that saves beside this rank is gone ({error}): it was killed, or has "
                "ended by itself; the rank's log and the kernel's say why"
            ) from error

    def _alive(self) -> set[BaseProcess]:
        """One at most. There are no others that begin meanwhile."""
        return set(multiprocessing.active_children()) - self._others


def _allow_open_files(needed: int) -> tuple[int, int]:
    """Of this process and those that it starts. Gives the limits that were. Raises RefusedError."""
    soft, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise RefusedError(
            f"`asynchronous: process` has a file open for each tensor, up to {needed} together, "
            f"and {hard} are allowed: `ulimit -Hn {needed}`, or `asynchronous: thread`"
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return limits
