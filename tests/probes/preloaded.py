"""What a rank imports, imported once: tests/probes/forked_rank.py forks it.

The worker itself is left out, as each rank runs it as its main module. The first optimizer imports
torch._dynamo, which takes nearly as long as torch.
"""

import gc

import torch
import torch._dynamo
import torch.distributed
import torch.distributed.fsdp

from broadgauge.probes.collectives import probe as collectives
from broadgauge.probes.training import probe as training

gc.freeze()
"""What is here already no rank has to look at, nor to copy."""
__all__ = ["collectives", "torch", "training"]
