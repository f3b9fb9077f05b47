"""Is the software here that the hardware needs, and is it one?"""

from collections.abc import Iterator

from broadgauge.doctor.host.asking import active_ports, gpus_here
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.records.record import Confidence, Finding, Severity


def several_nccl(facts: HardwareFacts) -> Iterator[Finding]:
    """Would a job find another NCCL than one thinks?"""
    versions = {each.version for each in facts.nccl if each.version is not None}
    if len(versions) < 2:
        return
    yield Finding(
        rule="host-several-nccl",
        severity=Severity.INFO,
        symptom=f"{len(versions)} versions of NCCL are installed",
        evidence=tuple(f"{each.path}: {each.version or 'unknown'}" for each in facts.nccl),
        cause="PyTorch's wheels bring their own; other programs take the loader's first",
        fix="`NCCL_DEBUG=VERSION` makes a job print the one it loaded",
        confidence=Confidence.POSSIBLE,
    )


def no_efa_plugin(facts: HardwareFacts) -> Iterator[Finding]:
    """AWS's adapters need a plugin: NCCL's own InfiniBand code can't use them."""
    names = [hca.name for hca, _ in active_ports(facts) if hca.driver == "efa"]
    if not names or facts.network_plugins or not gpus_here(facts):
        return
    yield Finding(
        rule="host-efa-no-plugin",
        severity=Severity.WARNING,
        symptom="EFA adapters are here, and no network plugin: NCCL will use sockets",
        evidence=(
            f"/sys/class/infiniband/{names[0]}/device/driver: efa",
            "no libnccl-net*.so in LD_LIBRARY_PATH nor in the system's library folders",
        ),
        cause="NCCL reaches EFA by the aws-ofi-nccl plugin only",
        fix="install aws-ofi-nccl (EFA installer) and put its lib folder on LD_LIBRARY_PATH",
        confidence=Confidence.LIKELY,
    )


RULES = (several_nccl, no_efa_plugin)
