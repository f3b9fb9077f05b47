"""What a rank imports, imported once: tests/probes/forked_rank.py forks it.

The worker itself is left out, as each rank runs it as its main module.
"""

import torch
import torch.distributed
import torch.distributed.fsdp

from broadgauge.probes.collectives import probe as collectives
from broadgauge.probes.training import probe as training

__all__ = ["collectives", "torch", "training"]
