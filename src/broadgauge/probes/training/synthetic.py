"""Which samples does a rank make up, where only their count and mean length are known?

All ranks the same: order and ids are drawn from one seed. Lengths are those of `broadgauge data
prepare --synthetic`; the ids are others, and as random.
"""

import torch

from broadgauge.messages.prepared_set import MOST_TWO_BYTE_TOKENS
from broadgauge.messages.synthetic_lengths import SyntheticLengths, lengths_by_quantile
from broadgauge.messages.training_data import SyntheticSamples
from broadgauge.probes.training.prepared import PreparedTokens

_SEED = 0


def synthetic_tokens(asked: SyntheticSamples, vocabulary: int) -> PreparedTokens:
    """Every id below `vocabulary` is equally likely."""
    wanted = SyntheticLengths(
        num_samples=asked.samples, num_tokens=asked.total_tokens, longest=asked.longest
    )
    generator = torch.Generator().manual_seed(_SEED)
    lengths = torch.tensor(lengths_by_quantile(wanted))
    lengths = lengths[torch.randperm(asked.samples, generator=generator)]
    ids = torch.randint(vocabulary, (asked.total_tokens,), generator=generator, dtype=torch.int32)
    return PreparedTokens(
        description=(
            f"made up by each rank: {asked.samples:,} samples, {asked.total_tokens:,} tokens, "
            f"lengths log-normal (sigma {wanted.spread_log_sd:g}), at least {wanted.shortest} and "
            f"at most {asked.longest}, random ids below {vocabulary:,}"
        ),
        ids=ids.to(torch.int16) if vocabulary <= MOST_TWO_BYTE_TOKENS else ids,
        offsets=torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
    )
