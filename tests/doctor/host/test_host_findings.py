"""Proves doctor/host/findings.py: what is said of whole machines."""

import json
from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.doctor.host.judging import findings, warned

from broadgauge.doctor.host.findings import host_findings
from broadgauge.doctor.host.reading import read_hardware
from broadgauge.specs.records.record import Severity


@pytest.mark.parametrize("build", [machines.dgx, machines.roce])
def test_a_healthy_machine_has_no_finding(tmp_path: Path, build: object) -> None:
    assert callable(build)
    build(tmp_path)
    assert findings(tmp_path) == {}


@pytest.mark.parametrize("build", [machines.laptop, machines.virtio_vm])
def test_lacking_gpus_and_rdma_is_no_fault(tmp_path: Path, build: object) -> None:
    assert callable(build)
    build(tmp_path)
    assert warned(tmp_path) == set()


def test_this_machine_is_judged() -> None:
    for finding in host_findings(read_hardware()):
        assert finding.rule.startswith("host-")
        assert finding.cause
        assert finding.fix
        assert finding.confidence is not None
        assert finding.evidence


def test_a_pod_with_a_virtual_function(tmp_path: Path) -> None:
    machines.vf_pod(tmp_path)
    assert warned(tmp_path) == {"host-memlock", "host-shm"}
    assert "IPC_LOCK" in (findings(tmp_path)["host-memlock"].fix or "")


def test_the_worst_comes_first(tmp_path: Path) -> None:
    machines.vf_pod(tmp_path)
    environ = {"NCCL_SOCKET_IFNAME": "ib0", "NCCL_ALGO": "Ring"}
    severities = [each.severity for each in host_findings(read_hardware(tmp_path, environ))]
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    assert severities == sorted(severities, key=order.index)
    assert set(severities) == set(order)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    machines.laptop(tmp_path)
    environ = {
        "NCCL_PROXY_TOKEN": "hunter2-of-mine",
        "NCCL_TOPO_FIEL": "https://me:hunter2-of-mine@host/topo.xml",
    }
    facts = read_hardware(tmp_path, environ)
    said = [*map(str, facts.variables), *(each.model_dump_json() for each in host_findings(facts))]
    assert {variable.name for variable in facts.variables} == set(environ)
    assert "hunter2-of-mine" not in json.dumps(said)
    assert "***" in json.dumps(said)
