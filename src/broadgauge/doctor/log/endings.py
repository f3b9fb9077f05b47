"""Which processes ended badly, in words that no rule explains? Their last words, kept as they are.

A traceback is Python's own; what stands in a line by itself is taken for an ending where the line
says so: an exception's name at its beginning, the level of an error, an exit code other than 0, a
signal. Others are no sign of an end.
"""

import re
from collections import deque
from dataclasses import dataclass, field

from broadgauge.doctor.log.clocks import clock_s
from broadgauge.doctor.log.facts import LastWords, Place
from broadgauge.doctor.log.masking import kept
from broadgauge.doctor.log.tracebacks import (
    BEGIN,
    ExceptionLine,
    OpenTracebacks,
    Traceback,
    raised,
)

MOST_ENDINGS = 50
"""Of exceptions the first ones; of other words the first and the last half."""
IGNORED = "Exception ignored in"
"""Of Python: what `__del__` raises ends nothing. Source: python/cpython Python/errors.c."""
LOGGED = "--- Logging error ---"
"""Of Python's logging: the line is lost, the program goes on. Source: Lib/logging/__init__.py."""
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_BEFORE = re.compile(
    r"(?:\s*(?:\[[^\]]{0,80}\](?:<\w+>)?:?|\([^)]{0,120}\)|\d{4}-\d\d-\d\d(?:T\S+)?|"
    r"\d\d:\d\d:\d\d\S*|\d{1,6}:|\S{1,80} \|(?=\s))\s*)*"
)
"""What launchers, loggers and collectors write before a program's own words."""
_ENDS_ALONE = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout)(?::\s|:?\s*$)"
)
_GLUED = re.compile(r"[\]>](?P<words>(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception): .*)$")
"""Behind a progress bar."""
_LEVEL = re.compile(
    r"(?<![\w\-/.'\"])(?:ERROR|FATAL|CRITICAL)(?![\w\-=/.'\"])|"
    r"(?:^|[\s:\]])(?:[Ff]atal error|[Ff]atal|error)(?=:\s+(?!null|none|None|[\d.\[{-]))|"
    r"\[\s*(?:error|fatal|critical)\s*\]|(?<!\w)[EF]\d{4} \d\d:\d\d:\d\d|"
    r"\d\d:\d\d:\d\d[.\d]*: F "
)
_CODE = r"\W{0,12}(?:=|:|of|is)?\s*(?:-?[1-9]\d{0,2}\b|0x[0-9a-f]*[1-9a-f])"
_EXIT_CODE = re.compile(
    rf"(?:[Ee]xit(?:ed|s)?(?: with)?(?: an?)?(?: non-zero| error)?[ -]?[Cc]?o?de|[Ee]xit status|"
    rf"[Rr]eturn ?code|non-zero (?:exit )?status|exited with(?: (?:code|status|signal))?|"
    rf"(?:failed|terminated|ended) with (?:code|status|signal)|"
    rf"code=(?:killed|exited|dumped), status=){_CODE}|^\+ exit [1-9]"
)
_WORDS = (
    *("core dumped", "Segmentation fault", "segfault at", "protection fault", "memory pressure"),
    *("stack smashing detected", "double free or corruption", "free(): invalid", "panicked at"),
    *("invalid pointer", "corrupted size vs", "Memory access fault by GPU", "HW Exception by GPU"),
    *("HSA_STATUS_ERROR", "Cuda error ", "CUDA error ", "NCCL error ", "MPI_ERRORS_ARE_FATAL"),
    *("job killed: ", "terminated badly", "Failed with result", "CrashLoopBackOff", "OOMKilled"),
    *("BackoffLimitExceeded", "status: FAILED", " is failed", "can't open file", " died"),
    *(": No module named ", "error while loading shared libraries", "Exited with signal"),
    *("(failed 1", "sending signal", "terminate called", "Fatal Python error", "panic: "),
)
"""Of processes that crashed, or were killed."""
_SIGNAL = re.compile(
    r"(?:got|received|receiving|caught|killed|terminated|exited|died|ended|crashed)\b.{0,60}"
    r"\bSIG(?:KILL|SEGV|ABRT|BUS|FPE|ILL|TERM)\b|[Ss]ignal \d{1,2} \(SIG|"
    r"^#?\s*SIG(?:SEGV|ILL|BUS|FPE|ABRT)\b"
)
_SHELL = re.compile(
    r"^(?:Aborted|Terminated|Hangup)\s*$|line \d+:\s+\d+ (?:Aborted|Terminated|Hangup)|^zsh: |"
    r"^Abort\(\d|^make(?:\[\d+\])?: \*\*\* .* Error \d|"
    r"nexpectedly (?:disconnected|exited|closed|died|ended)|Assertion .{0,200} ?failed"
)
_OF_SHELL = ("bort", "erminated", "Hangup", "zsh: ", "make", "nexpectedly", "Assertion")
_OF_OTHERS = frozenset({"KeyboardInterrupt", "SystemExit", "subprocess.CalledProcessError"})
"""Exceptions that something else brings about."""
_RANK = re.compile(r"\[rank(\d{1,7})\]:|\bRank (\d{1,7})\]|^\[1,(\d{1,7})\]<|^(\d{1,7}): ")
"""torch's, mpirun's and srun's ways to say whose line it is."""


@dataclass(slots=True)
class Endings:
    """Takes in lines of anyone but NCCL, in their order."""

    is_ignored: bool = False
    """The last line was the exception of a traceback that Python says it ignores."""
    _raised: list[LastWords] = field(default_factory=list)
    _first: list[LastWords] = field(default_factory=list)
    _latest: deque[LastWords] = field(default_factory=lambda: deque(maxlen=MOST_ENDINGS // 2))
    _open: OpenTracebacks = field(default_factory=OpenTracebacks)
    _num_ignored: int = 0
    """Tracebacks to come that Python says it ignores."""
    _last: dict[str, LastWords] = field(default_factory=dict)
    """By prefix: of a traceback that may go on in another one."""

    @property
    def found(self) -> list[LastWords]:
        """All that are kept, exceptions that no rule knows first."""
        return [*self._raised, *self._first, *self._latest]

    def begin(self) -> None:
        """Another file: nothing goes on in it."""
        self._open = OpenTracebacks()
        self._last, self._num_ignored = {}, 0

    def end(self, place: Place) -> None:
        """The file ends: a traceback whose exception is not in it, told where nothing else is."""
        for traceback in self._open.open:
            if not traceback.is_ignored:
                words = "a traceback, whose exception is not in the log"
                self._keep(LastWords(words, place, BEGIN, None, None, is_raised=False))
        self._open = OpenTracebacks()

    def take(
        self, text: str, place: Place, *, is_explained: bool = False, is_known: bool = False
    ) -> bool:
        """Is it a line of a program that ended, or that a rule knows?

        `is_explained`: a rule has a finding for it; `is_known`: a rule knows it as a fact.
        """
        if BEGIN in text:
            self._open.feed(text)
            if self._open.open and self._num_ignored:
                self._open.open[-1].is_ignored = True
            self._num_ignored = max(0, self._num_ignored - 1)
            return True
        if IGNORED in text or LOGGED in text:
            self._num_ignored += 1
            return True
        if any(words in text for words in _CHAINED):
            self._forget(text)
            return True
        ended = self._open.feed(text) if self._open.open else None
        self.is_ignored = ended is not None and ended[0].is_ignored
        if ended is not None:
            if not is_explained:
                self._end(*ended, text, place, is_known=is_known)
            return True
        return is_explained or self._alone(text, place, is_known=is_known)

    def _end(
        self, traceback: Traceback, rest: str, text: str, place: Place, *, is_known: bool
    ) -> None:
        said = raised(rest)
        if traceback.is_ignored or said is None:
            return
        ending = _ending(said, text, place, is_known=is_known)
        if len(self._last) >= MOST_ENDINGS:
            self._last.clear()
        self._last[traceback.prefix.pattern] = ending
        self._keep(ending)

    def _forget(self, text: str) -> None:
        """An exception while another one was handled: the later one is what ended it."""
        for prefix in tuple(self._last):
            match = re.match(prefix, text)
            if match is not None and text.startswith(_CHAINED, match.end()):
                ending = self._last.pop(prefix)
                for several in (self._raised, self._first, self._latest):
                    if ending in several:
                        several.remove(ending)

    def _alone(self, text: str, place: Place, *, is_known: bool) -> bool:
        match = _BEFORE.match(text)
        rest = text[match.end() :] if match is not None else text
        if _ENDS_ALONE.match(rest) is not None and (said := raised(rest)) is not None:
            self._keep(_ending(said, text, place, is_known=is_known))
            return True
        glued = _GLUED.search(text) if "rror: " in text or "xception: " in text else None
        if glued is not None and (said := raised(glued["words"])) is not None:
            self._keep(_ending(said, text, place, is_known=is_known))
            return True
        if not is_known and _calls_itself_bad(text):
            self._keep(
                LastWords(
                    words=kept(rest),
                    place=place,
                    text=kept(text),
                    rank=_rank(text),
                    clock_s=clock_s(text),
                    is_raised=False,
                    has_exception=False,
                )
            )
            return True
        return is_known

    def _keep(self, ending: LastWords) -> None:
        if ending.is_raised:
            if len(self._raised) < MOST_ENDINGS:
                self._raised.append(ending)
        elif len(self._first) < MOST_ENDINGS // 2:
            self._first.append(ending)
        else:
            self._latest.append(ending)


def _calls_itself_bad(text: str) -> bool:
    """Words are looked for before patterns, which take ten times as long."""
    if any(word in text for word in _WORDS):
        return "handler" not in text
    if "SIG" in text and "handler" not in text and _SIGNAL.search(text) is not None:
        return True
    if any(word in text for word in _OF_SHELL) and _SHELL.search(text) is not None:
        return True
    has_code = "ode" in text or "tatus" in text or "exited" in text or "+ exit" in text
    if has_code and _EXIT_CODE.search(text) is not None:
        return True
    return _LEVEL.search(text) is not None


def _ending(said: ExceptionLine, text: str, place: Place, *, is_known: bool) -> LastWords:
    is_of_others = said.type in _OF_OTHERS or "nccl error" in said.words.casefold()
    is_cause = not is_known and not is_of_others
    return LastWords(
        words=kept(str(said)),
        place=place,
        text=kept(text),
        rank=_rank(text),
        clock_s=clock_s(text),
        is_raised=is_cause,
        is_interrupt=said.type == "KeyboardInterrupt",
    )


def _rank(text: str) -> int | None:
    match = _RANK.search(text)
    return None if match is None else int(next(filter(None, match.groups())))
