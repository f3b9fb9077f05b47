"""Is a setting that the job printed told from advice that names one?"""

import pytest

from broadgauge.doctor.log.files import text_source
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.printed_variables import printed_variable
from broadgauge.doctor.log.reading import read_logs


@pytest.mark.parametrize(
    "before",
    [
        "",
        "export ",
        "declare -x ",
        "+ ",
        "++ export ",
        "[rank0]: ",
        "[pod/worker-0/pytorch] ",
        "2026-11-23T01:02:03.123456789Z stdout F ",
        "[1,0]<stdout>: ",
        "0: ",
    ],
)
def test_a_setting_behind_what_launchers_print(before: str) -> None:
    assert printed_variable(f'{before}NCCL_IB_HBA="mlx5"') == ("NCCL_IB_HBA", "mlx5")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "run with NCCL_DEBUG=INFO",
        "Set NCCL_IGNORE_NET_MISMATCH=1",
        "NCCL_DEBUG=INFO torchrun train.py",
        "MY_NCCL_THING=1",
        "NCCL_DEBUG: INFO",
    ],
)
def test_what_sets_nothing(text: str) -> None:
    assert printed_variable(text) is None


def test_a_misspelt_one_is_found_with_its_line() -> None:
    reading = read_logs([text_source("x\nexport NCCL_IB_HBA=mlx5\n")])
    (finding,) = log_findings(reading)
    assert finding.rule == "host-variable-unknown"
    assert finding.evidence[-1].endswith(":2: printed by the job")


def test_a_value_that_looks_like_a_token_is_not_kept() -> None:
    token = "ghp_" + "a1B2" * 9
    reading = read_logs([text_source(f"NCCL_IB_HBA={token}\n")])
    assert token not in str(reading) + str(log_findings(reading))
