"""How do the ranks of one launch find each other, and how does each trial get new connections?

One TCPStore lives as long as the launch; a trial's process group lives on a prefix of it. So the
link can be reshaped between two trials: the second one's connections begin on the new link.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import _set_pg_timeout

from broadgauge.messages.rank import TrialCommand
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity


class Rendezvous:
    """The launch's store, made when the first trial needs it."""

    def __init__(self, identity: RankIdentity) -> None:
        self._identity = identity
        self._store: Any = None
        self._timeouts_s: dict[Phase, float] = {}

    def store(self, timeout_s: float) -> Any:
        if self._store is None:
            self._store = dist.TCPStore(
                self._identity.master_addr,
                self._identity.master_port,
                self._identity.world_size,
                is_master=self._identity.rank == 0 and not self._identity.is_store_there,
                timeout=timedelta(seconds=timeout_s),
            )
        return self._store

    @contextmanager
    def process_group(self, command: TrialCommand, device: Device) -> Iterator[None]:
        """A group of its own for one trial.

        After an exception it is left as it is: destroying a group whose peers are gone can hang,
        and the process is about to end.
        """
        self._timeouts_s = command.process_group_timeouts_s
        timeout_s = self._timeouts_s[Phase.RENDEZVOUS]
        is_cuda = command.layout.device == "cuda"
        dist.init_process_group(
            command.layout.backend,
            store=dist.PrefixStore(f"trial/{command.trial_id}", self.store(timeout_s)),
            rank=self._identity.rank,
            world_size=self._identity.world_size,
            timeout=timedelta(seconds=timeout_s),
            device_id=device.torch_device if is_cuda else None,
        )
        yield
        self._timeouts_s = {}
        dist.destroy_process_group()
        gc.collect()  # a group held by a cycle would keep its connections open

    def enter_phase(self, phase: Phase) -> None:
        """What is sent from now on may take as long as this phase allows.

        Gloo gives the new limit to its living connections, NCCL to each work begun from now on.
        Source: setTimeout() of ProcessGroupGloo.hpp and ProcessGroupNCCL.hpp, torch 2.8 to 2.11.
        """
        if phase in self._timeouts_s and dist.is_initialized():
            _set_pg_timeout(timedelta(seconds=self._timeouts_s[phase]))
