"""A user's own DDP script whose rank 1 fails in step 6: `faulty_script.py hang|crash|exit`."""

# ruff: noqa: T201

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FAULT = sys.argv[1]


def read_next_batch(step):
    if step == 6 and dist.get_rank() == 1:
        if FAULT == "hang":
            time.sleep(1e6)
        if FAULT == "crash":
            raise KeyError("labels")
        if FAULT == "exit":
            os._exit(5)
    return torch.ones(4, 8)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    for step in range(100):
        began_s = time.monotonic()
        model(read_next_batch(step)).sum().backward()
        time.sleep(0.05)
        print(f"step took {time.monotonic() - began_s:.4f} s", flush=True)


main()
