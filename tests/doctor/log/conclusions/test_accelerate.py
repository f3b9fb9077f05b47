"""Is FSDP configured, and does accelerate run something else?"""

import pytest

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text

CONFIGURATION = """
compute_environment: LOCAL_MACHINE
distributed_type: {}
fsdp_config:
  fsdp_state_dict_type: {}
num_processes: 8
"""


def rules_of(text: str) -> list[str]:
    return [finding.rule for finding in log_findings(read_text(text))]


@pytest.mark.parametrize("kind", ["NO", "'NO'", "MULTI_GPU"])
def test_a_type_that_does_not_read_the_settings_is_told(kind: str) -> None:
    assert rules_of(CONFIGURATION.format(kind, "SHARDED_STATE_DICT")) == ["fsdp-not-used"]


def test_fsdp_is_well_and_so_are_processes_that_say_multi_gpu() -> None:
    text = CONFIGURATION.format("FSDP", "SHARDED_STATE_DICT")
    text += "Distributed environment: DistributedType.MULTI_GPU  Backend: nccl\nNum processes: 8\n"
    assert rules_of(text) == []


def test_one_process_where_many_are_configured() -> None:
    ran = "Distributed environment: DistributedType.NO\nNum processes: 1\n"
    assert rules_of(CONFIGURATION.format("FSDP", "SHARDED_STATE_DICT") + ran) == ["fsdp-not-used"]
    assert rules_of(ran) == []


def test_gathering_on_rank_0_is_told_beside_it() -> None:
    assert rules_of(CONFIGURATION.format("FSDP", "FULL_STATE_DICT")) == ["full-state-dict"]


def test_a_crash_in_an_attention_kernel_names_the_switch() -> None:
    text = "[rank3]: RuntimeError: FlashAttention only supports Ampere GPUs or newer."
    (finding,) = log_findings(read_text(text))
    assert finding.rule == "attention-kernel"
    assert finding.symptom == "an attention kernel failed for rank 3"
    assert finding.fix is not None
    assert "eager" in finding.fix
    assert "sdpa" in finding.fix
