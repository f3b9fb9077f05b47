"""How is the gradients' all-reduce switched off, with everything else of the step as it was?

A DDP module takes one communication hook for its life, so this one looks at a switch. The trainer
divides the loss by the number of ranks, therefore the sum over ranks is the mean gradient and the
hook needs no pass of its own over the bucket: on and off differ in the all-reduce alone.
Source: torch.distributed.algorithms.ddp_comm_hooks, `allreduce_hook` and `noop_hook`.
"""

import torch
import torch.distributed as dist


class CommunicationSwitch:
    def __init__(self) -> None:
        self.is_on = True


def reduce_if_on(
    switch: CommunicationSwitch, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """DDP's communication hook: a future of the bucket, summed over the ranks or as it is."""
    if switch.is_on:
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future
