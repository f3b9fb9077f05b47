"""Trains a tiny model on real ranks of this machine, one launch for many trials."""

from pathlib import Path

from tests.merging.outcomes import make_case

from broadgauge.merging.merge import MergedTrial, merge
from broadgauge.merging.rank_blocks import RankBlocks, read_blocks
from broadgauge.specs.records.record import Status
from broadgauge.specs.workloads.workload import GptModel, LlamaModel, TrainWorkload

from .harness import Ranks

PLANTED = str(Path(__file__).parent / "planted.py")
TINY = GptModel(layers=2, hidden=32, heads=2, seq_len=16)
LLAMA = LlamaModel(
    kind="llama", layers=2, hidden=32, heads=4, kv_heads=2, ffn_hidden=48, seq_len=16
)
MIXTURE = LLAMA.model_copy(update={"experts": 8, "experts_per_token": 2, "bias": "all"})
WORKLOAD = TrainWorkload(
    kind="train",
    model=TINY,
    batch_per_rank=2,
    steps=28,
    warm_up_steps=2,
    block_steps=7,
    learning_rate=1e-3,
    bucket_cap_bytes=20_000,
)


class Launch:
    """Ranks started once: importing torch takes longer than a training here."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self.trials = ranks, 0
        self.said: tuple[RankBlocks, ...] = ()
        """By rank, what it said in the last trial."""

    def train(self, **changes: object) -> MergedTrial:
        self.trials += 1
        case = make_case(WORKLOAD.model_copy(update=changes), nodes=len(self.ranks.ranks))
        outcome = self.ranks.run_trial(case, trial_id=f"t{self.trials}")
        assert outcome.status is Status.OK, self.ranks.logs()
        self.said = read_blocks(outcome.messages)
        return merge(case, outcome, None)
