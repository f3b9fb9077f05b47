"""How do all ranks begin at the same moment, as nearly as the network lets them?"""

from typing import Any

import torch
import torch.distributed as dist

from broadgauge.probes.devices import Device


class Alignment:
    """A barrier over the process group, meant to stand outside the timed part.

    Ranks leave it within about one one-way latency of each other, and the slowest rank's time of
    an iteration can be longer by that: it matters for messages that take a few latencies, not for
    those that fill the link. On GPUs the barrier is work on the stream, so the host never waits;
    below some 20 µs an iteration is bound by the host's calls, as in any eager training.
    """

    def __init__(self, device: Device) -> None:
        self._token: Any = torch.zeros(1, device=device.torch_device)

    def __call__(self) -> None:
        if self._token.device.type == "cuda":
            dist.all_reduce(self._token)
        else:
            dist.barrier()
