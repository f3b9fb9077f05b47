"""Is FSDP configured, and does accelerate run something else without a word?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading, Seen
from broadgauge.specs.records.record import Confidence, Finding, Severity

_FSDP = frozenset({"fsdp-configured", "full-state-dict"})
"""Rules of lines that only a configuration with FSDP's settings has."""
_WORDS = {
    "NO": "nothing is distributed: each process trains for itself",
    "MULTI_GPU": "DDP: every GPU holds the whole model",
}


def fsdp_not_used(reading: LogReading) -> Iterator[Conclusion]:
    """FSDP's settings beside a type that does not read them.

    Source: huggingface/accelerate src/accelerate/commands/launch.py: `use_fsdp` follows from
    `distributed_type: FSDP` alone. That processes say MULTI_GPU proves nothing: they say it with
    FSDP, too (src/accelerate/state.py, PartialState).
    """
    settings = [seen for seen in reading.seen if seen.rule.id in _FSDP]
    configured = _types(reading, "accelerate-configured")
    run = _types(reading, "accelerate-runs")
    wants_more = bool(settings) or bool(configured.keys() & {"FSDP", "DEEPSPEED", "MULTI_GPU"})
    if "NO" in run and wants_more:
        yield _conclusion("NO", [run["NO"], *configured.values(), *settings])
        return
    ignoring = configured.keys() & _WORDS.keys()
    if settings and ignoring and "FSDP" not in configured:
        kind = sorted(ignoring)[0]
        yield _conclusion(kind, [configured[kind], *settings])


def _types(reading: LogReading, rule: str) -> dict[str, Seen]:
    return {seen.fields["type"]: seen for seen in reading.seen if seen.rule.id == rule}


def _conclusion(kind: str, seen: list[Seen]) -> Conclusion:
    lines = [each.lines[0] for each in seen]
    return Conclusion(
        place=lines[0][0],
        finding=Finding(
            rule="fsdp-not-used",
            severity=Severity.WARNING,
            symptom=f"accelerate runs {_WORDS[kind]}, though more is configured",
            evidence=quoted(lines),
            cause=(
                "`distributed_type` decides, and FSDP's settings are read only where it is FSDP"
                if kind == "MULTI_GPU"
                else "one process was started, by `python` or with num_processes 1, or the "
                "configuration says `distributed_type: NO`"
            ),
            fix=(
                "distributed_type: FSDP, or `accelerate launch --use_fsdp --num_processes N "
                "--config_file FILE`; `print(accelerator.distributed_type)` in the script proves it"
            ),
            confidence=Confidence.LIKELY,
        ),
    )
