"""Proves that hardware is read inside an emulated node as in a pod on an overlay."""

from typing import Any

import pytest

from broadgauge.doctor.host.findings import host_findings
from broadgauge.messages.codec import decode
from broadgauge.messages.hardware import HardwareFacts


@pytest.mark.namespaces
def test_a_node_has_a_veth_that_nccl_takes_for_ten_gigabits(run_case: Any) -> None:
    answer = run_case("hardware")
    facts = decode(HardwareFacts, answer["facts"])
    (nic,) = facts.nics
    assert (nic.kind, nic.speed_mbps, nic.pci) == ("veth", 10_000, None)
    assert [text.partition("/")[0] for text in nic.addresses] == [answer["address"]]
    assert facts.machine.can_lock_memory is False
    assert "host-nic-speed" in {finding.rule for finding in host_findings(facts)}
