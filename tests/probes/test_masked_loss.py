"""Is the loss of a set that masks what users say that of a plain loop, however it is packed?"""

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from broadgauge.messages.model_shape import LlamaShape  # noqa: E402
from broadgauge.messages.prepared_set import COUNTED  # noqa: E402
from broadgauge.messages.training_data import TokenBudget  # noqa: E402
from broadgauge.probes.identity import RankIdentity  # noqa: E402
from broadgauge.probes.training import prepared  # noqa: E402
from broadgauge.probes.training.data import Batches  # noqa: E402
from broadgauge.probes.training.llama import Llama  # noqa: E402
from broadgauge.probes.training.packed_batches import PackedBatches  # noqa: E402
from broadgauge.probes.training.prepared import open_prepared  # noqa: E402
from broadgauge.probes.trial import RefusedError  # noqa: E402
from broadgauge.tokenizing.preparing import prepare  # noqa: E402
from broadgauge.tokenizing.request import PrepareRequest  # noqa: E402

from tests.tokenizing.reading import samples_in  # noqa: E402  isort: skip

pytestmark = pytest.mark.measuring
SEQ_LEN = 160
SHAPE = LlamaShape(
    layers=1, hidden=16, heads=2, kv_heads=1, head_dim=8, ffn_hidden=24, vocabulary=256,
    seq_len=SEQ_LEN, is_head_tied=True,
)  # fmt: skip
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Conversations whose answers are 1 to 8 characters long."""
    path = tmp_path_factory.mktemp("data")
    talks = [
        [
            {"role": "user", "content": "q" * (number % 3)},
            {"role": "assistant", "content": "answered"[: 1 + number]},
        ]
        for number in range(8)
    ]
    lines = "".join(json.dumps({"messages": talk}) + "\n" for talk in talks)
    (path / "talks.jsonl").write_text(lines)
    request = PrepareRequest(
        source=str(path / "talks.jsonl"), field="messages", is_conversation=True,
        loss_on="assistant", out=path / "set",
    )  # fmt: skip
    return prepare(request).folder


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return Llama(SHAPE)


def identity(rank, world_size):
    return RankIdentity(
        rank=rank, world_size=world_size, local_rank=rank, local_world_size=world_size, node=0,
        master_addr="", master_port=0,
    )  # fmt: skip


def plain_loss(folder, model):
    """The mean over all counted tokens of all samples, one by one, read with nothing but Python."""
    flags = list((folder / COUNTED).read_bytes())
    losses = []
    for sample in samples_in(folder):
        mine, flags = flags[: len(sample)], flags[len(sample) :]
        for place in range(1, len(sample)):
            if mine[place]:
                tokens, following = torch.tensor([sample[:place]]), torch.tensor(sample[place])
                alone = torch.full((1, place), -100)
                alone[0, -1] = following
                losses.append(model(tokens, alone))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("world_size", [1, 3])
def test_the_masked_loss_is_that_of_a_plain_loop(folder, model, world_size):
    data = open_prepared(str(folder), 256)
    budget = TokenBudget(max_batch_len=SEQ_LEN, effective_batch_size=8)
    loss, num_batches = 0.0, 0
    with torch.no_grad():
        for rank in range(world_size):
            batches = PackedBatches(data, budget, SEQ_LEN, identity(rank, world_size), CPU)
            for batch in batches.micro_batches(0, 0):
                loss += model(batch.tokens, batch.next_tokens) / batch.divisor
                num_batches += 1
        assert num_batches > world_size
        plain = plain_loss(folder, model)
    torch.testing.assert_close(loss, plain)
    unmasked = sum(map(len, samples_in(folder))) - 8
    assert int(data.num_predicted.sum()) < unmasked / 3


class Sizes(TorchDispatchMode):
    """Notes how many elements the largest tensor has that is made in here."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        made = operation(*arguments, **(options or {}))
        if torch.is_tensor(made) and not made._is_view():
            self.largest = max(self.largest, made.numel())
        return made


@pytest.mark.parametrize("piece", [1, 7, 64, 10_000])
def test_predicted_tokens_are_counted_piece_by_piece(piece, folder, monkeypatch):
    """Nothing is made that is as large as the set, and nothing is lost between two pieces."""
    monkeypatch.setattr(prepared, "PIECE_TOKENS", piece)
    data = replace(open_prepared(str(folder), 256))  # which has counted nothing yet
    with Sizes() as sizes:
        found = data.num_predicted
    labels = [data.following(number, -100) for number in range(8)]
    assert found.tolist() == [int((each != -100).sum()) for each in labels]
    assert sizes.largest <= max(min(piece, len(data.ids)), 2 * 9)


def test_gradients_follow_masked_tokens_alone(folder, model):
    """What is masked is read: it has no loss of its own."""
    data = open_prepared(str(folder), 256)
    tokens, following = data.sample(7), data.following(7, -100)
    counted = (following != -100).nonzero().flatten()
    logits = torch.randn(len(tokens), 256, requires_grad=True)
    torch.nn.functional.cross_entropy(logits, following).backward()
    assert logits.grad.abs().sum(1).nonzero().flatten().tolist() == counted.tolist()
    assert bytes(following[counted].tolist()) == b"answered<|im_end|>"


def test_a_sample_without_a_counted_token_is_refused(folder, tmp_path):
    """Of a set that something else wrote: of ours it is left out."""
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    lengths = list(map(len, samples_in(folder)))
    flags = bytearray((folder / COUNTED).read_bytes())
    flags[lengths[0] : lengths[0] + lengths[1]] = bytes(lengths[1])
    flags[lengths[0]] = 1  # the first token: nothing precedes it
    (tmp_path / COUNTED).write_bytes(flags)
    with pytest.raises(RefusedError, match=r"sample 1 of the prepared set .* no token that the"):
        open_prepared(str(tmp_path), 256)


def test_sequences_that_are_cut_anywhere_are_refused(folder):
    with pytest.raises(RefusedError, match="add `packing`"):
        Batches(open_prepared(str(folder), 256), SHAPE, CPU)
