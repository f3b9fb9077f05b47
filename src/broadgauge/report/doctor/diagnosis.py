"""What does `broadgauge doctor` print of logs, or of this machine? The answer first."""

from rich.console import Console

from broadgauge.doctor.diagnosis import Diagnosis
from broadgauge.report.doctor.answers import print_answers, print_first_line, print_reasons
from broadgauge.report.doctor.host import print_host
from broadgauge.report.doctor.terminal import (
    print_expectation,
    print_findings,
    print_job,
    print_matrix,
)


def print_diagnosis(diagnosis: Diagnosis, console: Console) -> None:
    """Is RDMA on? What NCCL did, what it should carry, which way the bytes go, what is wrong.

    Of logs without a line of NCCL what is wrong comes before why the answers are unknown.
    """
    job = diagnosis.job
    if job is not None and not job.num_processes and diagnosis.host is None:
        print_first_line(diagnosis.answers, console, diagnosis.wanted)
        print_findings(diagnosis.findings, console)
        print_job(job, console)
        print_reasons(diagnosis.answers, console, diagnosis.wanted)
        return
    print_answers(diagnosis.answers, console, diagnosis.wanted, is_machine=job is None)
    if job is not None:
        print_job(job, console)
        if diagnosis.expected is not None and job.num_processes:
            print_expectation(diagnosis.expected, console)
    if diagnosis.matrix is not None:
        print_matrix(diagnosis.matrix, console)
    if diagnosis.host is not None:
        print_host(diagnosis.host, console)
    print_findings(diagnosis.findings, console)
