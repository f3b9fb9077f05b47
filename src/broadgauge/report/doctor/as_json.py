"""What does `broadgauge doctor --json` print? One object, whose keys only grow."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from broadgauge.doctor.diagnosis import Diagnosis
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.running.diagnosing import RunDiagnosis
from broadgauge.specs.records.record import Finding


def doctor_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """`job`, `paths`, `expected`: of logs; `host`: this machine; `run`; null: not asked.
    `answers`: to the first line's questions, of the logs, or of this machine where there are none.
    """
    job, matrix, expected = diagnosis.job, diagnosis.matrix, diagnosis.expected
    return {
        **_document(diagnosis.findings, diagnosis.host),
        "job": None if job is None else job.to_json(),
        "paths": None if matrix is None else matrix.to_json(),
        "expected": None if expected is None else dataclasses.asdict(expected),
        "answers": {each.value: dataclasses.asdict(a) for each, a in diagnosis.answers.items()},
    }


def _document(findings: Sequence[Finding], host: HardwareFacts | None) -> dict[str, Any]:
    """All keys, in their order."""
    return {
        "findings": [finding.model_dump(mode="json") for finding in findings],
        "job": None,
        "paths": None,
        "expected": None,
        "host": None if host is None else dataclasses.asdict(host),
        "run": None,
        "answers": None,
    }


def run_diagnosis_document(
    diagnosis: RunDiagnosis, host_findings: Sequence[Finding], host: HardwareFacts | None
) -> dict[str, Any]:
    """The same of a run: findings say where they hold, and `run` what NCCL did in each case."""
    document = _document(host_findings, host)
    document["findings"] = [
        {
            **each.finding.model_dump(mode="json"),
            "cases": list(each.cases),
            "trials": list(each.trials),
            "launches": list(each.launches),
            "ranks": list(each.ranks),
        }
        for each in diagnosis.findings
    ] + document["findings"]
    document["run"] = {
        "folder": str(diagnosis.folder),
        "experiment": diagnosis.experiment_name,
        "cases": [
            {
                "label": case.label,
                "launches": list(case.launches),
                "job": None if case.overview is None else case.overview.to_json(),
                "paths": None if case.paths is None else case.paths.to_json(),
                "answers": {each.value: dataclasses.asdict(a) for each, a in case.answers.items()},
            }
            for case in diagnosis.cases
        ],
        "notes": list(diagnosis.notes),
    }
    return document
