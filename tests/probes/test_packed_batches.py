"""Is a step of packed samples the step of its samples one by one, on any number of ranks?"""

import itertools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from broadgauge.messages.epochs import steps_per_epoch  # noqa: E402
from broadgauge.messages.prepared_set import token_bytes_of  # noqa: E402
from broadgauge.messages.training_data import SyntheticSamples, TokenBudget  # noqa: E402
from broadgauge.probes.identity import RankIdentity  # noqa: E402
from broadgauge.probes.training.batch import IGNORED  # noqa: E402
from broadgauge.probes.training.building import model_of  # noqa: E402
from broadgauge.probes.training.data import Batches, as_characters  # noqa: E402
from broadgauge.probes.training.packed_batches import PackedBatches  # noqa: E402
from broadgauge.probes.training.prepared import PreparedTokens, open_prepared, widened  # noqa: E402
from broadgauge.probes.training.sources import read_data  # noqa: E402
from broadgauge.probes.training.step_shares import mean_share  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.probes.trial import RefusedError  # noqa: E402
from broadgauge.specs.workloads.workload import GptModel  # noqa: E402
from broadgauge.tokenizing.synthetic_set import parse_synthetic, prepare_synthetic  # noqa: E402

from .training_tasks import trainer_of  # noqa: E402

from tests.tokenizing.reading import samples_in  # noqa: E402  isort: skip

pytestmark = pytest.mark.measuring
SHAPE = GptModel(layers=2, hidden=16, heads=2, seq_len=24, vocabulary=70_000)
SEED = 5
CPU = torch.device("cpu")


def identity(rank, world_size):
    return RankIdentity(
        rank=rank,
        world_size=world_size,
        local_rank=rank,
        local_world_size=world_size,
        node=0,
        master_addr="127.0.0.1",
        master_port=0,
    )


def made_up(lengths):
    """Samples of these lengths, each id of them another one."""
    offsets = torch.tensor([0, *itertools.accumulate(lengths)])
    ids = torch.arange(int(offsets[-1]), dtype=torch.int32)
    return PreparedTokens(description="made up", ids=ids, offsets=offsets)


def second_epoch(spread, seed, num_steps):
    """Of each of its steps and ranks the micro-batches; None: no sample of a step fits."""
    try:
        return [
            [each.share(seed, step).micro_batches for each in spread]
            for step in range(num_steps, 2 * num_steps)
        ]
    except RefusedError:
        return None


LENGTHS = st.lists(st.integers(2, 24), min_size=1, max_size=40)


@given(LENGTHS, st.integers(1, 5), st.integers(4, 60), st.integers(1, 45), st.integers(0, 9))
def test_an_epoch_has_each_sample_that_fits_once(lengths, ranks, budget, batch, seed):
    """Within the budget, in as many micro-batches on each rank, `batch` samples a step; and the
    same again for the same seed."""
    data, asked = made_up(lengths), TokenBudget(max_batch_len=budget, effective_batch_size=batch)
    num_steps = steps_per_epoch(len(lengths), batch)
    fitting = [number for number, length in enumerate(lengths) if length <= budget]
    assume(fitting)
    spread, again = (
        [PackedBatches(data, asked, 24, identity(n, ranks), CPU) for n in range(ranks)]
        for _ in range(2)
    )
    steps = second_epoch(spread, seed, num_steps)
    if steps is None:
        assert len(fitting) < len(lengths)
        return
    assert spread[0].num_left_out == len(lengths) - len(fitting)
    taken = [[n for own in step for micro_batch in own for n in micro_batch] for step in steps]
    assert sorted(itertools.chain(*taken)) == fitting
    assert max(map(len, taken)) <= batch
    if len(fitting) == len(lengths):
        assert [len(each) for each in taken[:-1]] == [batch] * (num_steps - 1)
    for number, step in enumerate(steps, start=num_steps):
        assert len({len(own) for own in step}) == 1
        assert all(sum(lengths[n] for n in micro) <= budget for own in step for micro in own)
        assert step == [each.share(seed, number).micro_batches for each in again]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    asked = parse_synthetic("samples=23,mean_length=9,min_length=4,max_length=24,vocabulary=70000")
    return prepare_synthetic(asked, tmp_path_factory.mktemp("set") / "set").folder


def batches(folder, *, ranks=1, budget=30, batch=10):
    data = open_prepared(str(folder), 70_000)
    asked = TokenBudget(max_batch_len=budget, effective_batch_size=batch)
    return [PackedBatches(data, asked, 24, identity(n, ranks), CPU) for n in range(ranks)]


@pytest.mark.parametrize("vocabulary", [300, 65_536, 70_000])
def test_samples_are_those_on_disk(tmp_path, vocabulary):
    asked = parse_synthetic(f"samples=9,mean_length=9,vocabulary={vocabulary}")
    made = prepare_synthetic(asked, tmp_path / "set")
    assert made.described.token_bytes == token_bytes_of(vocabulary)
    data = open_prepared(str(made.folder), vocabulary)
    on_disk = samples_in(made.folder)
    assert [data.sample(number).tolist() for number in range(9)] == on_disk
    whole = [each for sample in on_disk for each in sample]
    shape = GptModel(seq_len=6, vocabulary=vocabulary).shape
    tokens, following = Batches(data, shape, CPU).draw(1, 0, 4, identity(0, 1))
    for row, after in zip(tokens.tolist(), following.tolist(), strict=True):
        starts = [n for n in range(len(whole)) if whole[n : n + 7] == [*row, after[-1]]]
        assert starts
        assert after[:-1] == row[1:]


def test_an_epoch_reads_every_sample_once_on_any_number_of_ranks(folder):
    for ranks in (1, 3):
        read = []
        for step in range(3):
            for each in batches(folder, ranks=ranks):
                taken = each.share(SEED, step).micro_batches
                read += [number for batch in taken for number in batch]
        assert sorted(read) == list(range(23))


def test_ranks_take_as_many_micro_batches_and_the_same_again(folder):
    first, second = batches(folder, ranks=2)
    for step in range(6):
        shares = [each.share(SEED, step) for each in (first, second)]
        assert len({len(share.micro_batches) for share in shares}) == 1
        assert len({share.num_predicted for share in shares}) == 1
    first.plan(SEED, range(4))
    assert first.share(SEED, 2) == batches(folder, ranks=2)[0].share(SEED, 2)
    assert first.share(SEED, 0) != first.share(SEED, 3)  # the next epoch's shuffle is another
    assert first.share(SEED, 0) != first.share(SEED + 1, 0)


def gradients(model, losses):
    model.zero_grad()
    sum(losses).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_the_loss_and_its_gradients_are_those_of_the_samples_one_by_one(folder, ranks):
    """The mean over all tokens that the step predicts, each sample attending to itself alone."""
    model = model_of(SHAPE.shape)
    draw_weights(model, SHAPE.shape, 1, CPU)
    on_disk, step = samples_in(folder), 1
    spread = batches(folder, ranks=ranks)
    numbers = [n for b in spread for taken in b.share(SEED, step).micro_batches for n in taken]
    samples = [torch.tensor([on_disk[number]]) for number in numbers]
    predicted = sum(sample.shape[1] - 1 for sample in samples)
    plain = [
        model(sample[:, :-1], sample[:, 1:]) * (sample.shape[1] - 1) / predicted
        for sample in samples
    ]
    expected = gradients(model, plain)
    micro_batches = [batch for each in spread for batch in each.micro_batches(SEED, step)]
    packed = [model(each.tokens, each.next_tokens) / each.divisor for each in micro_batches]
    assert sum(packed).item() == pytest.approx(sum(plain).item(), rel=1e-5)
    torch.testing.assert_close(gradients(model, packed), expected, rtol=1e-4, atol=1e-6)


def test_a_rank_without_samples_computes_along_and_counts_nothing(folder):
    spread = batches(folder, ranks=9, batch=4)
    found = [(each.micro_batches(SEED, 0), each.share(SEED, 0).size) for each in spread]
    idle = [(batch, size) for (batch,), size in found if not size.num_samples]
    assert len(idle) == 5
    for batch, size in idle:
        assert (batch.num_samples, batch.num_tokens, size.num_tokens) == (0, 0, 0)
        assert batch.divisor == math.inf
        assert batch.tokens.shape == batch.next_tokens.shape


def flops_in_a_sequence_of(num_tokens: int) -> float:
    return GptModel(**SHAPE.model_dump() | {"seq_len": num_tokens}).flops_per_token


def test_sizes_count_no_padding(folder):
    (one,) = batches(folder)
    size, read = one.share(SEED, 0).size, one.micro_batches(SEED, 0)
    assert size.num_samples == sum(batch.num_samples for batch in read) == 10
    assert size.num_tokens == sum(batch.num_tokens for batch in read)
    assert size.num_positions == sum(batch.tokens.numel() for batch in read)
    labels = sum(int((batch.next_tokens != IGNORED).sum()) for batch in read)
    assert labels == size.num_tokens - size.num_samples == one.share(SEED, 0).num_predicted
    lengths = [len(samples_in(folder)[n]) for b in one.share(SEED, 0).micro_batches for n in b]
    by_hand = sum(n * flops_in_a_sequence_of(n) for n in lengths)
    mean = mean_share([size, size], flops_in_a_sequence_of)
    assert mean.flops == pytest.approx(by_hand)
    assert (mean.num_samples, mean.num_tokens) == (10, size.num_tokens)
    assert mean.padding_ratio == pytest.approx(1 - size.num_tokens / size.num_positions)


def test_what_does_not_fit_is_refused_or_counted(folder):
    with pytest.raises(RefusedError, match="no sample fits `max_batch_len`, 3 tokens"):
        batches(folder, budget=3)
    data = open_prepared(str(folder), 70_000)
    budget = TokenBudget(max_batch_len=30, effective_batch_size=4)
    with pytest.raises(RefusedError, match=r"has 24 tokens, .* 23 .*--max-length 23"):
        PackedBatches(data, budget, 23, identity(0, 1), CPU)
    with pytest.raises(RefusedError, match="vocabulary is 256"):
        open_prepared(str(folder), 256)
    (short,) = batches(folder, budget=12, batch=23)
    longer = sum(len(sample) > 12 for sample in samples_in(folder))
    assert f"{longer} of them left out" in short.description
    assert short.share(SEED, 0).size.num_samples == 23 - longer
    (one_by_one,) = batches(folder, budget=12, batch=1)
    with pytest.raises(RefusedError, match="are longer than `max_batch_len`, 12 tokens"):
        one_by_one.plan(SEED, range(23))


def test_a_step_without_a_sample_that_fits_is_refused_before_the_first():
    """Of 8 samples some are longer than the budget, and one of the 8 steps has such a one."""
    way = {
        "data": {"samples": 8, "mean_length": 8},
        "packing": {"max_batch_len": 9, "effective_batch_size": 1},
    }
    with pytest.raises(RefusedError, match=r"samples of step \d+ are longer"):
        trainer_of(**way, warm_up_steps=4, steps=4)
    two_at_once = {"max_batch_len": 9, "effective_batch_size": 8}
    trainer = trainer_of(**way | {"packing": two_at_once}, warm_up_steps=4, steps=4)
    assert trainer.packed.num_left_out


@pytest.mark.parametrize("offsets", [(0, 9, 9, 20), (0, 9, 8, 20), (1, 9, 12, 20), (0, 1, 12, 20)])
def test_offsets_with_an_empty_sample_or_out_of_order_are_refused(tmp_path, offsets):
    made = prepare_synthetic(parse_synthetic("samples=3,mean_length=6.7"), tmp_path / "set")
    assert made.described.num_tokens == 20
    raw = b"".join(each.to_bytes(8, "little") for each in offsets)
    (made.folder / "offsets.bin").write_bytes(raw)
    with pytest.raises(RefusedError, match=r"set` is damaged: its offsets are not of 20 tokens"):
        open_prepared(str(made.folder), 256)


def test_ranks_make_up_the_same_samples_of_the_mean_that_is_asked_for():
    asked = SyntheticSamples(samples=9872, total_tokens=9872 * 1483, longest=8192)
    data, again = (read_data(asked, 49_152) for _ in range(2))
    assert len(data.lengths) == 9872
    assert int(data.lengths.sum()) == len(data.ids) == 14_640_176
    assert int(data.lengths.max()) <= 8192
    assert torch.equal(data.ids, again.ids)
    assert torch.equal(data.offsets, again.offsets)
    assert 0 <= int(widened(data.ids).min()) <= int(widened(data.ids).max()) < 49_152
    assert "9,872 samples, 14,640,176 tokens" in data.description


def test_characters_are_numbered_as_mingpt_does():
    """The text's distinct ones in their order; where there are more, the rarest share an id."""
    content = b"hello world"
    numbers = {byte: number for number, byte in enumerate(sorted(set(content)))}
    assert list(as_characters(content, 65)) == [numbers[byte] for byte in content]
    assert list(as_characters(content, len(numbers))) == [numbers[byte] for byte in content]
    few = as_characters(content, 3)
    assert [few[content.index(byte)] for byte in b"lo"] == [0, 1]
    assert set(few) == {0, 1, 2}
    assert as_characters(content, 256) == content
