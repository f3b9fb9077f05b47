"""What does training cost? US dollars for 10^9 tokens, from a GPU's price by the hour."""

SECONDS_AN_HOUR = 3600.0
TOKENS = 1e9


def usd_per_gigatoken(
    tokens_per_s: float, gpus: int, usd_per_gpu_hour: float | None
) -> float | None:
    """GPUs × price an hour × hours of 10^9 tokens; None where no price is known.

    All GPUs are paid for as long as the training runs: 10^9 tokens take 10^9 / rate seconds.
    """
    if usd_per_gpu_hour is None or not tokens_per_s > 0:
        return None
    hours = TOKENS / tokens_per_s / SECONDS_AN_HOUR
    return gpus * usd_per_gpu_hour * hours
