"""How many steps are an epoch, counted in samples?"""


def steps_per_epoch(num_samples: int, samples_per_step: int) -> int:
    """35,456 samples at 32 a step: 1,108 steps. Where they don't divide the last step has fewer
    samples, and counts as a step: what a data loader does that drops nothing (torch.utils.data,
    DataLoader, `drop_last=False`)."""
    return -(-num_samples // samples_per_step)
