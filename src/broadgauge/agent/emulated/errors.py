"""Which step of building the emulated nodes failed, with what errno, and what helps?

EmulationError (RuntimeError)   a step failed; `.step`, `.error_number`, `.hint`
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


class EmulationError(RuntimeError):
    """A step of the building or the reading of emulated nodes failed."""

    def __init__(self, step: str, detail: str, *, error_number: int | None, hint: str) -> None:
        name = errno.errorcode.get(error_number, str(error_number)) if error_number else "no errno"
        super().__init__(f"{step}: {detail} ({name})\nhint: {hint}")
        self.step = step
        self.detail = detail
        self.error_number = error_number
        """None where no system call or netlink request named an errno."""
        self.hint = hint


@contextmanager
def building(step: str, hint: str) -> Iterator[None]:
    """Who failed? Name the step of any OSError or netlink error raised inside."""
    try:
        yield
    except OSError as error:
        raise EmulationError(step, str(error), error_number=error.errno, hint=hint) from error
    except Exception as error:
        # pyroute2's NetlinkError is no OSError, and importing it here would make every
        # importer of this module pay 0.3 s.
        code = getattr(error, "code", None)
        if not isinstance(code, int):
            raise
        detail = os.strerror(code) if code > 0 else str(error)
        raise EmulationError(step, detail, error_number=code, hint=hint) from error
