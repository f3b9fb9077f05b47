"""Do all ranks read the same prepared set? Its folder is on each machine, by the same path.

Each rank counts through the whole set to find its own part of a step. With another set it would
take other micro-batches than the others wait for, or train on samples twice.
"""

from typing import Any

import torch
import torch.distributed as dist

from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.prepared import PreparedTokens
from broadgauge.probes.training.text import Text
from broadgauge.probes.trial import RefusedError

TOLD_BYTES = 1024
"""Of each rank: the set's key, and as much of its description as there is room for."""


def refuse_different_sets(data: Text | PreparedTokens, identity: RankIdentity, device: Any) -> None:
    """Raises RefusedError on every rank where one reads another set than rank 0. Called by all
    ranks: they tell each other what they read."""
    if not isinstance(data, PreparedTokens) or data.key is None or identity.world_size == 1:
        return
    (first_key, first), *others = _told_by_all(data.key, data.description, identity, device)
    for rank, (key, description) in enumerate(others, start=1):
        if key != first_key:
            raise RefusedError(
                f"rank {rank} reads another set than rank 0 under the same path: rank {rank} "
                f"{description}; rank 0 {first}"
            )


def _told_by_all(
    key: str, description: str, identity: RankIdentity, device: Any
) -> list[tuple[str, str]]:
    """By rank. As bytes: torch's collectives of objects need numpy."""
    text = f"{key} {description}".encode(errors="replace")[:TOLD_BYTES].ljust(TOLD_BYTES)
    mine = torch.frombuffer(bytearray(text), dtype=torch.uint8).to(device)
    told = [torch.empty_like(mine) for _ in range(identity.world_size)]
    dist.all_gather(told, mine)
    texts = [bytes(each.tolist()).decode(errors="ignore").rstrip() for each in told]
    return [(words[0], words[2]) for words in (text.partition(" ") for text in texts)]
