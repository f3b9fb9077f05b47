"""What have the platforms of this machine for ranks to run on?"""

from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.platforms import Devices, PythonWithoutTorch

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
        without_torch=_without_torch(machine),
    )


def local_devices(machine: MachineFacts) -> Devices:
    """One node, without links."""
    return Devices(
        place=THIS_MACHINE,
        num_gpus=len(machine.gpus),
        num_cores=len(machine.cores),
        are_shared=True,
        most_nodes=1,
        without_torch=_without_torch(machine),
    )


def _without_torch(machine: MachineFacts) -> tuple[PythonWithoutTorch, ...]:
    has_torch = machine.torch is not None
    return () if has_torch else (PythonWithoutTorch(python=f"Python {machine.python}"),)
