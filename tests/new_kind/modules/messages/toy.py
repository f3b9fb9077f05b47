"""What is a rank told of its naps?"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyTask:
    kind: Literal["toy"] = "toy"
    naps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NapBlock:
    """What one rank says of its naps."""

    type: Literal["block"] = "block"
    kind: Literal["naps"] = "naps"
    trial_id: str
    seconds: tuple[float, ...]
