"""Is a step of packed samples the step of its samples one by one, on any number of ranks?"""

import math

import pytest

torch = pytest.importorskip("torch")

from broadgauge.messages.prepared_set import token_bytes_of  # noqa: E402
from broadgauge.messages.tasks import TokenBudget  # noqa: E402
from broadgauge.probes.identity import RankIdentity  # noqa: E402
from broadgauge.probes.training.batch import IGNORED  # noqa: E402
from broadgauge.probes.training.data import Batches, as_characters  # noqa: E402
from broadgauge.probes.training.model import Gpt  # noqa: E402
from broadgauge.probes.training.packed_batches import PackedBatches  # noqa: E402
from broadgauge.probes.training.prepared import open_prepared  # noqa: E402
from broadgauge.probes.training.step_shares import packed_flops  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.probes.trial import RefusedError  # noqa: E402
from broadgauge.specs.workload import GptModel  # noqa: E402
from broadgauge.tokenizing.synthesis import parse_synthesis, synthesize  # noqa: E402

from tests.tokenizing.reading import samples_in  # noqa: E402  isort: skip

pytestmark = [pytest.mark.measuring, pytest.mark.shares_cores]
SHAPE = GptModel(layers=2, hidden=16, heads=2, seq_len=24, vocabulary=70_000)
SEED = 5


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    asked = parse_synthesis("count=23,mean=9,min=4,max=24,vocabulary=70000")
    return synthesize(asked, tmp_path_factory.mktemp("set") / "set").folder


def batches(folder, *, ranks=1, budget=30, batch=10):
    data = open_prepared(str(folder), 70_000)
    asked = TokenBudget(max_batch_len=budget, effective_batch_size=batch)
    device = torch.device("cpu")
    return [PackedBatches(data, asked, 24, identity(n, ranks), device) for n in range(ranks)]


@pytest.mark.parametrize("vocabulary", [300, 65_536, 70_000])
def test_samples_are_those_on_disk(tmp_path, vocabulary):
    made = synthesize(parse_synthesis(f"count=9,mean=9,vocabulary={vocabulary}"), tmp_path / "s")
    assert made.described.token_bytes == token_bytes_of(vocabulary)
    data = open_prepared(str(made.folder), vocabulary)
    on_disk = samples_in(made.folder)
    assert [data.sample(number).tolist() for number in range(9)] == on_disk
    whole = [each for sample in on_disk for each in sample]
    tokens, following = Batches(data, 6, torch.device("cpu")).draw(1, 0, 4, identity(0, 1))
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
    model = Gpt(SHAPE.shape)
    draw_weights(model, SHAPE.shape, 1, torch.device("cpu"))
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
    assert packed_flops(flops_in_a_sequence_of, [size]) == pytest.approx(by_hand)


def test_what_does_not_fit_is_refused_or_counted(folder):
    with pytest.raises(RefusedError, match="no sample fits `max_batch_len`, 3 tokens"):
        batches(folder, budget=3)
    data = open_prepared(str(folder), 70_000)
    budget = TokenBudget(max_batch_len=30, effective_batch_size=4)
    with pytest.raises(RefusedError, match=r"has 24 tokens, .* 23 .*--max-length 23"):
        PackedBatches(data, budget, 23, identity(0, 1), torch.device("cpu"))
    with pytest.raises(RefusedError, match="vocabulary is 256"):
        open_prepared(str(folder), 256)
    (short,) = batches(folder, budget=12, batch=23)
    longer = sum(len(sample) > 12 for sample in samples_in(folder))
    assert f"{longer} of them left out" in short.description
    assert short.share(SEED, 0).size.num_samples == 23 - longer
    (one_by_one,) = batches(folder, budget=12, batch=1)
    with pytest.raises(RefusedError, match="are longer than `max_batch_len`, 12 tokens"):
        one_by_one.plan(SEED, range(23))


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
