"""Which collectives does a step make, and how are they left out with everything else as it was?

A strategy gives its collectives to torch once, for the life of the model; each of them looks at
this switch. On and off therefore differ in the collectives alone.
"""

from collections import Counter
from typing import Any

from broadgauge.specs.rank_messages import Message


class Communication:
    def __init__(self) -> None:
        self.is_on = True
        self._counted: Counter[tuple[str, int]] = Counter()

    def begin_step(self) -> None:
        """Forgets the step before; the last step with communication on stays known."""
        if self.is_on:
            self._counted.clear()

    def count(self, op: str, whole: Any) -> None:
        """Notes one collective; `whole` is the tensor of all ranks' parts, size S of nccl-tests."""
        self._counted[op, whole.numel() * whole.element_size()] += 1

    def messages(self) -> tuple[Message, ...]:
        """What the last communicating step sent, each size once."""
        return tuple(
            Message(op=op, size_bytes=size_bytes, count=count)
            for (op, size_bytes), count in sorted(self._counted.items())
        )
