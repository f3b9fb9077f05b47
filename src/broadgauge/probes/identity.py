"""Which rank is this process? Told by torchrun's environment contract."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RankIdentity:
    """Source: torch.distributed.run, "Environment Variables"."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node: int
    master_addr: str
    master_port: int
    is_store_there: bool = False
    """Does the launcher hold the store at that port, so that no rank has to?"""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "RankIdentity":
        return cls(
            rank=int(environment["RANK"]),
            world_size=int(environment["WORLD_SIZE"]),
            local_rank=int(environment["LOCAL_RANK"]),
            local_world_size=int(environment["LOCAL_WORLD_SIZE"]),
            node=int(environment["GROUP_RANK"]),
            master_addr=environment["MASTER_ADDR"],
            master_port=int(environment["MASTER_PORT"]),
            is_store_there=environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        )
