"""What of a trial's words may be stored? All but the values of secrets.

Ranks say what they like: an exception's text or the end of a log may hold a token. Names, hashes
and figures are ours and stay as they are.
"""

from broadgauge.engine.ports import Mask
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import Environment, Finding, PathFacts, Record, TrialError


def masked_record(record: Record, mask: Mask) -> Record:
    """With every text in it masked that came from ranks, logs or judges."""
    return record.model_copy(
        update={
            "error": None if record.error is None else masked_error(record.error, mask),
            "missing": {name: mask(reason) for name, reason in record.missing.items()},
            "data": None if record.data is None else mask(record.data),
            "path": None if record.path is None else _path(record.path, mask),
            "nccl": None if record.nccl is None else _nccl(record.nccl, mask),
            "findings": tuple(_finding(finding, mask) for finding in record.findings),
        }
    )


def masked_error(error: TrialError, mask: Mask) -> TrialError:
    """Its message, its line and the last lines of a log."""
    return error.model_copy(
        update={
            "message": mask(error.message),
            "frame": None if error.frame is None else mask(error.frame),
            "last_lines": tuple(mask(line) for line in error.last_lines),
        }
    )


def masked_loss(error: LaunchError, mask: Mask) -> LaunchError:
    """Of a launch that did not come up."""
    return LaunchError(
        mask(error.message),
        hint=None if error.hint is None else mask(error.hint),
        error=None if error.error is None else masked_error(error.error, mask),
        findings=tuple(_finding(finding, mask) for finding in error.findings),
    )


def masked_environment(environment: Environment, mask: Mask) -> Environment:
    """Its variables; those that hold a secret by their names are masked already."""
    variables = {name: mask(value) for name, value in environment.variables.items()}
    return environment.model_copy(update={"variables": variables})


def _finding(finding: Finding, mask: Mask) -> Finding:
    return finding.model_copy(
        update={
            "symptom": mask(finding.symptom),
            "evidence": tuple(mask(line) for line in finding.evidence),
            "cause": None if finding.cause is None else mask(finding.cause),
            "fix": None if finding.fix is None else mask(finding.fix),
        }
    )


def _nccl(nccl: NcclUse, mask: Mask) -> NcclUse:
    """Lines of its log may name what a variable holds."""
    ways = tuple(
        way.model_copy(update={"line": None if way.line is None else mask(way.line)})
        for way in nccl.ways
    )
    notes = tuple(mask(note) for note in nccl.notes)
    return nccl.model_copy(update={"ways": ways, "notes": notes})


def _path(path: PathFacts, mask: Mask) -> PathFacts:
    return path.model_copy(update={"evidence": tuple(mask(line) for line in path.evidence)})
