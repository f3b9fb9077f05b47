"""A user's script for torchrun: DDP whose averaged gradient tells how many ranks it met.

The gradient of w · x is x, which is 1 on rank 0 and 2 on rank 1: DDP makes 1.5 of it.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(2**18, 1, bias=False))
inputs = torch.full((1, 2**18), 1.0 + dist.get_rank())
for _ in range(4):
    begin_s = time.perf_counter()
    model.zero_grad()
    model(inputs).sum().backward()
    gradient = next(model.parameters()).grad
    assert gradient is not None
    told = {"step_time_s": time.perf_counter() - begin_s, "loss": gradient.mean().item()}
    if dist.get_rank() == 0:
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
sys.stderr.write(f"rank {dist.get_rank()} of {dist.get_world_size()} on {os.uname().nodename}\n")
dist.destroy_process_group()
