"""What does `broadgauge doctor --json` print? One object, whose keys only grow."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from broadgauge.doctor.log.overview import JobOverview
from broadgauge.doctor.log.path_matrix import PathMatrix
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.record import Finding


def doctor_document(
    findings: Sequence[Finding],
    *,
    job: JobOverview | None = None,
    matrix: PathMatrix | None = None,
    host: HardwareFacts | None = None,
) -> dict[str, Any]:
    """`job` and `paths`: of logs; `host`: of this machine; null where it was not asked."""
    return {
        "findings": [finding.model_dump(mode="json") for finding in findings],
        "job": None if job is None else job.to_json(),
        "paths": None if matrix is None else matrix.to_json(),
        "host": None if host is None else dataclasses.asdict(host),
    }
