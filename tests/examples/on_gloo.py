"""`on_gloo.py SCRIPT WORD…`, under torchrun: runs the script with FSDP by Accelerate on CPUs.

Accelerate has FSDP on accelerators only. Here its state takes the ranks for some while it is made;
all that follows, sharding, loading and steps, is its own code over Gloo.
"""

import runpy
import sys
from pathlib import Path
from typing import Any

from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType

_made = AcceleratorState.__init__


def _make(self: Any, *args: Any, **kwargs: Any) -> None:
    PartialState(cpu=True)
    if "distributed_type" not in AcceleratorState._shared_state:
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_XPU
    _made(self, *args, **kwargs)


AcceleratorState.__init__ = _make
_, script, *words = sys.argv
sys.argv = [script, *words]
sys.path.insert(0, str(Path(script).parent))
runpy.run_path(script, run_name="__main__")
