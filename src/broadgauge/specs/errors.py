"""What can go wrong, what is said, and which exit code the command ends with.

    BroadgaugeError                 1  something is wrong with Broadgauge itself
    ├── InputError                  2  the user's file, flag or folder is wrong: place, value, hint
    │   ├── ExperimentError         2  one or more problems in an experiment file
    │   └── TooFewGpusError         2  ranks need GPUs that are not there
    ├── PlatformError               4  this machine or cluster refuses what the experiment needs
    │   ├── LaunchError             3  the rank processes of one launch did not come up
    │   └── UncollectedError        4  what is measured elsewhere can't be had now, and stays there
    └── RunFolderError              5  the run folder can't be written, read, locked or trusted

Exit codes of `broadgauge run`: 0 every case measured; 1 an internal error; 2 bad input; 3 the run
ended and some cases failed; 4 the platform was refused (where nodes can't be emulated, what needs
no second node did run on the local platform); 5 the run folder; 129, 130 and 143 ended by SIGHUP,
SIGINT and SIGTERM, resumable.

With `--fail-above`, of `run` (where none of the above happened) and of `compare`: 0 no regression;
6 a regression; 7 can't tell. Of `doctor`: 0 nothing worse than a note; 8 warnings; 9 errors; 10
unknown: the logs have no line that anything is known of, or do not say what was expected. Of
`import`, where no measurement failed: 0, 8 and 9 as the doctor's.
"""

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from broadgauge.specs.records.record import Finding, TrialError


class ExitCode(IntEnum):
    """What a command ends with; docs/commands.md says it to the user."""

    OK = 0
    INTERNAL_ERROR = 1
    BAD_INPUT = 2
    TRIALS_FAILED = 3
    PLATFORM_REFUSED = 4
    RUN_FOLDER = 5
    REGRESSION = 6
    CANNOT_TELL = 7
    DOCTOR_WARNINGS = 8
    DOCTOR_ERRORS = 9
    DOCTOR_UNKNOWN = 10
    PREFLIGHT_FAILS = 11
    HANGUP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


class BroadgaugeError(Exception):
    """Base of every error that is reported without a traceback."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL_ERROR

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class InputError(BroadgaugeError):
    """What the user gave can't be used."""

    exit_code = ExitCode.BAD_INPUT


class TooFewGpusError(InputError):
    """A plan needs more GPUs than there are."""

    def __init__(self, message: str, *, num_wanted: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.num_wanted = num_wanted


class PlatformError(BroadgaugeError):
    """The machine or the cluster refuses what the experiment needs."""

    exit_code = ExitCode.PLATFORM_REFUSED


class LaunchError(PlatformError):
    """One launch did not come up; the next may.

    `error` says what is known of it (which rank, its last lines, whether a time limit passed) and
    becomes the error of the trial's record; so do `findings`, of what its ranks wrote.
    """

    exit_code = ExitCode.TRIALS_FAILED

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        error: "TrialError | None" = None,
        findings: "tuple[Finding, ...]" = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.error = error
        self.findings = findings


class UncollectedError(PlatformError):
    """What is measured elsewhere can't be had now. It is left there: `run --resume` collects it."""


class RunFolderError(BroadgaugeError):
    """The run folder can't be written, read, locked or trusted."""

    exit_code = ExitCode.RUN_FOLDER


class Problem:
    """One thing that is wrong in an experiment: where, what was seen, and what would work."""

    __slots__ = ("hint", "message", "where")

    def __init__(self, where: str, message: str, hint: str | None = None) -> None:
        self.where = where
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}"
        return text if self.hint is None else f"{text}\n  hint: {self.hint}"


class ExperimentError(InputError):
    """One or more problems in an experiment file, each with its place."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
