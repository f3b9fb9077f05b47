"""One rank of a small training with torch: `python torch_rank.py RANK DEVICE ID_FILE SCENARIO`.

Run by record.py, with as much output beside NCCL's as a training job prints. Without GPUs it runs
over Gloo, to try it.
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

NUM_RANKS = 2


def groups_of(scenario: str, rank: int) -> list[dist.ProcessGroup | None]:
    """The world; for `torch-groups` also one of each rank alone, and one of both."""
    groups: list[dist.ProcessGroup | None] = [None]
    if scenario == "torch-groups":
        alone = [dist.new_group([member]) for member in range(NUM_RANKS)]
        groups += [alone[rank], dist.new_group(list(range(NUM_RANKS)))]
    return groups


def main() -> None:
    number, device_number, id_file, scenario = sys.argv[1:]
    rank = int(number)
    has_gpus = torch.cuda.is_available()
    device = torch.device("cuda", int(device_number)) if has_gpus else torch.device("cpu")
    os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "1")
    dist.init_process_group(
        "nccl" if has_gpus else "gloo",
        init_method=f"file://{id_file}",
        rank=rank,
        world_size=NUM_RANKS,
        timeout=timedelta(seconds=8),
        device_id=device if has_gpus else None,
    )
    groups = groups_of(scenario, rank)
    gradients = torch.ones(2**20, device=device)
    for step in range(20):
        if scenario == "torch-timeout" and rank == 1 and step == 5:
            time.sleep(25)
        if scenario == "torch-crash" and rank == 1 and step == 5:
            raise ValueError("labels.json: no such sample")
        began_s = time.perf_counter()
        for group in groups:
            dist.all_reduce(gradients, group=group)
        gradients /= NUM_RANKS
        took_s = time.perf_counter() - began_s
        norm = gradients.norm().item()
        print(
            f"[rank{rank}] step {step} | loss {2.5 / (step + 1):.4f} | grad norm {norm:.3f} | "
            f"{took_s:.4f} s/step",
            flush=True,
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
