"""Are both versions told where the kernel's module and the driver's library differ?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Finding

NVML = "Failed to initialize NVML: Driver/library version mismatch\n"
KERNEL = (
    "[ 12.1] NVRM: API mismatch: the client has the version 550.107.02, but\n"
    "                NVRM: this kernel module has the version 550.90.07.  Please\n"
)
PROC = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n"
NO_GPU = "[rank0]: ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!\n"


def told(text: str) -> list[Finding]:
    return list(log_findings(read_text(text)))


def test_both_versions_and_what_follows_from_it_once() -> None:
    (found,) = told(NVML + KERNEL + NO_GPU)
    assert "kernel module (550.90.07)" in found.symptom
    assert "library (550.107.02)" in found.symptom


def test_without_the_kernels_word_the_versions_are_not_made_up() -> None:
    (found,) = told(NVML + PROC + NO_GPU)
    assert "differ in version" in found.symptom
    assert "550" not in found.symptom


def test_what_the_driver_says_of_itself_is_no_finding() -> None:
    assert told(PROC) == []
