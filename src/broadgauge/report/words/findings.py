"""How are a finding's cause and fix told, and which of them say why a trial failed?"""

from broadgauge.specs.records.record import Confidence, Finding, Record, Severity

_MOST = 3
_CONFIDENCE = {
    Confidence.CERTAIN: "certain",
    Confidence.LIKELY: "likely",
    Confidence.POSSIBLE: "one possible cause",
}


def cause_words(cause: str | None, confidence: Confidence | None) -> str | None:
    """`the memlock limit is too low (likely)`."""
    if cause is None or confidence is None:
        return cause
    return f"{cause} ({_CONFIDENCE[confidence]})"


def why_failed(record: Record) -> tuple[str, ...]:
    """What the logs say of a failed trial: the worst findings, each with cause and fix."""
    worst = [
        finding
        for severity in (Severity.ERROR, Severity.WARNING)
        for finding in record.findings
        if finding.severity is severity
    ]
    message = "" if record.error is None else record.error.message
    lines: list[str] = []
    for finding in worst[:_MOST]:
        lines += _lines(finding, message)
    return tuple(dict.fromkeys(lines))


def _lines(finding: Finding, message: str) -> list[str]:
    """Without what the error says already."""
    cause = cause_words(finding.cause, finding.confidence)
    is_told = finding.cause is not None and finding.cause in message
    return [
        *([] if finding.symptom in message else [finding.symptom]),
        *([] if cause is None or is_told else [f"cause: {cause}"]),
        *([] if finding.fix is None else [f"fix: {finding.fix}"]),
    ]
