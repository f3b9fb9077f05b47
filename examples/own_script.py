"""A training script such as users have: plain torch and DDP, JSON lines with the time of a step."""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--half", action="store_true", help="send gradients as float16")
parser.add_argument("--fault", choices=("crash", "hang"), help="of rank 1, in step 12")
options = parser.parse_args()


def next_batch(step: int) -> torch.Tensor:
    if step == 12 and dist.get_rank() == 1:
        if options.fault == "crash":
            raise KeyError("labels")
        while options.fault == "hang":
            time.sleep(1)
    return torch.randn(8, options.width, device=device)


has_gpu = torch.cuda.is_available()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpu else torch.device("cpu")
dist.init_process_group("nccl" if has_gpu else "gloo")
torch.manual_seed(0)
layers = [nn.Linear(options.width, options.width) for _ in range(4)]
model = DistributedDataParallel(nn.Sequential(*layers).to(device))
if options.half:
    model.register_comm_hook(None, fp16_compress_hook)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(options.steps):
    start = time.perf_counter()
    inputs = next_batch(step)
    optimizer.zero_grad()
    loss = (model(inputs) - inputs).square().mean()
    loss.backward()
    optimizer.step()
    value = loss.item()  # waits for the device
    if dist.get_rank() == 0:
        seconds = time.perf_counter() - start
        print(json.dumps({"step": step, "step_time_s": seconds, "loss": value}), flush=True)
dist.destroy_process_group()
