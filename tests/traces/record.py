"""Records small real traces: two Gloo ranks on this CPU train a tiny GPT, with DDP or FSDP2.

    python tests/traces/record.py ddp FOLDER [--plant load:0.1] [--rank 1]

writes `FOLDER/ddp.rank0.json.gz` and `…rank1…`. What stands in tests/traces/recorded was made so,
packed again with `gzip -9n`, with the torch that is in their names: 2.11.0 is the locked one, 2.6.0
and 2.9.1 stood in environments of their own (`python -m venv FOLDER; FOLDER/bin/pip install
torch==2.6.0 numpy`); `ddp-late` with `--plant load:0.023 --rank 1`. 2.6's FSDP2
asks the CPU's stream for events, which it has not. `--plant PLACE:SECONDS` sleeps
there in every step, on all ranks or on `--rank`: in the data loader (`load`), in a range
`save_checkpoint` (`save`), between operators (`forward`).
"""

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

DIM, TOKENS, VOCABULARY, LAYERS = 32, 16, 64, 1
TRACED = 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.attention = nn.MultiheadAttention(DIM, 2, batch_first=True)
        self.widen, self.narrow = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normal = self.norm(x)
        x = x + self.attention(normal, normal, normal, need_weights=False)[0]
        return x + self.narrow(torch.relu(self.widen(self.norm(x))))


class Gpt(nn.Module):
    def __init__(self, sleep_s: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(DIM, VOCABULARY)
        self.sleep_s = sleep_s

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        time.sleep(self.sleep_s)
        return self.head(x)


class Tokens(Dataset[torch.Tensor]):
    def __init__(self, sleep_s: float) -> None:
        self.sleep_s = sleep_s

    def __len__(self) -> int:
        return 64

    def __getitem__(self, place: int) -> torch.Tensor:
        if place % 4 == 0:
            time.sleep(self.sleep_s)
        return torch.arange(place, place + TOKENS + 1) % VOCABULARY


def spread(model: nn.Module, kind: str) -> nn.Module:
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    for block in model.blocks:  # type: ignore[union-attr]
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train(rank: int, options: argparse.Namespace) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    place, _, seconds = options.plant.partition(":")
    is_here = options.rank in (None, rank)
    sleeps = {place: float(seconds)} if place and is_here else {}
    model = spread(Gpt(sleeps.get("forward", 0.0)), options.kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches: Iterator[torch.Tensor] = iter(
        DataLoader(Tokens(sleeps.get("load", 0.0)), batch_size=4)
    )

    def written(profiler: profile) -> None:
        path = options.folder / f"{options.kind}.rank{rank}.json.gz"
        profiler.export_chrome_trace(str(path))

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=TRACED, repeat=1),
        on_trace_ready=written,
    ) as profiler:
        for _ in range(2 + TRACED):
            tokens = next(batches)
            scores = model(tokens[:, :-1]).flatten(0, 1)
            loss = nn.functional.cross_entropy(scores, tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if "save" in sleeps:
                with record_function("save_checkpoint"):
                    time.sleep(sleeps["save"])
            profiler.step()
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["ddp", "fsdp2"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plant", default="")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--port", type=int, default=29_617)
    options = parser.parse_args()
    mp.spawn(train, args=(options,), nprocs=2)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
