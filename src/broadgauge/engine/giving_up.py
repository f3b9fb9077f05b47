"""Which cases would only fail again? Those that failed alike before, and never succeeded.

A failure at a line of the rank's own, or one that refuses the case, is not chance: once is enough.
Of any other (a signal, an exit code without words) two in a row must be alike. Not asked of what
the machine did, such as ranks that did not come up or a disk that is full.
"""

from collections.abc import Sequence

from broadgauge.specs.records.failures import NOT_AGAIN, is_alike
from broadgauge.specs.records.record import ErrorKind, Record, Status, TrialError

_BY_ITSELF = (ErrorKind.CRASHED, ErrorKind.HUNG, ErrorKind.KILLED, ErrorKind.REFUSED)


def why_given_up(case_key: str, records: Sequence[Record]) -> TrialError | None:
    """The failure that would come again. None: go on with this case."""
    own = [record for record in records if record.case_key == case_key]
    if any(record.status is Status.OK for record in own):
        return None
    errors = [record.error for record in own if record.status in (Status.FAILED, Status.TIMEOUT)]
    last = errors[-1] if errors else None
    if last is None or last.kind not in _BY_ITSELF:
        return None
    if last.kind is ErrorKind.REFUSED or last.frame is not None:
        return last
    return last if len(errors) > 1 and is_alike(errors[-2], last) else None


def not_run_again(error: TrialError) -> TrialError:
    """The reason of a trial that is skipped for it."""
    return error.model_copy(
        update={
            "message": f"{NOT_AGAIN}{error.message}",
            "last_lines": (),
        }
    )
