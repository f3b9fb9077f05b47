"""The plainest all-reduce of 256 MiB in torch.distributed: what our probe is held against."""

import itertools
import json
import os
import statistics

import torch
import torch.distributed as dist

SIZE_BYTES = 256 * 2**20
WARM_UP, ITERATIONS = 5, 40

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
tensor = torch.ones(SIZE_BYTES // 4, dtype=torch.float32, device="cuda")
edges = [torch.cuda.Event(enable_timing=True) for _ in range(ITERATIONS + 1)]
for _ in range(WARM_UP):
    dist.all_reduce(tensor)
torch.cuda.synchronize()
dist.barrier()
edges[0].record()
for edge in edges[1:]:
    dist.all_reduce(tensor)
    edge.record()
torch.cuda.synchronize()
seconds = [a.elapsed_time(b) / 1e3 for a, b in itertools.pairwise(edges)]
if dist.get_rank() == 0:
    print(json.dumps({"raw_time_s": statistics.fmean(seconds)}), flush=True)
dist.destroy_process_group()
