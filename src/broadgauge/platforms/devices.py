"""What have the platforms of this machine for ranks to run on?"""

from broadgauge.specs.machine import MachineFacts
from broadgauge.specs.platforms import Devices

THIS_MACHINE = "this machine"


def emulated_devices(machine: MachineFacts) -> Devices:
    """Nodes share out this machine's cores and GPUs."""
    return Devices(
        place=THIS_MACHINE,
        num_gpus=len(machine.gpus),
        num_cores=len(machine.cores),
        are_shared=True,
        can_shape=True,
        can_delay=machine.can_delay,
        has_torch=machine.torch is not None,
    )


def local_devices(machine: MachineFacts) -> Devices:
    """One node, without links."""
    return Devices(
        place=THIS_MACHINE,
        num_gpus=len(machine.gpus),
        num_cores=len(machine.cores),
        are_shared=True,
        most_nodes=1,
        has_torch=machine.torch is not None,
    )
