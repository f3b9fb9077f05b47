"""Is a prepared set that a training reads looked at before any rank starts?"""

import json
import re
from pathlib import Path

import pytest

from broadgauge.running.kinds.prepared_samples import check_prepared
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.prepared_data import Packing
from broadgauge.specs.workloads.workload import GptModel
from broadgauge.tokenizing.preparing import prepare
from broadgauge.tokenizing.request import PrepareRequest
from broadgauge.tokenizing.synthetic_set import parse_synthetic, prepare_synthetic


def made(folder: Path, words: str) -> Path:
    return prepare_synthetic(parse_synthetic(words), folder / "set").folder


def refused(folder: Path, packing: Packing | None = None, **shape: int) -> str | None:
    """What is said, with its hint; None: it passes."""
    try:
        check_prepared("`data.prepared`", folder, model=GptModel(**shape), packing=packing)
    except InputError as error:
        return str(error)
    return None


def test_a_set_that_fits_the_model_passes(tmp_path: Path) -> None:
    folder = made(tmp_path, "samples=5,mean_length=5,vocabulary=300")
    assert refused(folder, vocabulary=300) is None
    assert refused(folder, vocabulary=320) is None  # tables are often padded
    said = refused(folder, vocabulary=256)
    assert said == (
        "`data.prepared` has a vocabulary of 300 tokens, and the model's is 256\n"
        "  hint: model: {vocabulary: 300}"
    )


def test_one_that_is_not_there_or_torn_is_named(tmp_path: Path) -> None:
    assert "`data.prepared`: `" in str(refused(tmp_path / "set"))
    assert "set` is no folder" in str(refused(tmp_path / "set"))
    folder = made(tmp_path, "samples=5,mean_length=5")
    (folder / "tokens.bin").write_bytes(b"")
    assert "the set is damaged" in str(refused(folder))


@pytest.mark.parametrize(
    ("seq_len", "budget", "words"),
    [
        (8, 40, r"has samples of \d+ tokens that fit `max_batch_len`, and the model takes 8 "),
        (8, 40, r"or prepare it with --max-length 8$"),
        (8, 7, None),
        (40, 40, None),
        (40, 5, r"no sample fits `max_batch_len`, 5 tokens: the shortest has 6, the longest 40"),
    ],
)
def test_samples_that_the_budget_takes_and_the_model_does_not_are_named(
    tmp_path: Path, seq_len: int, budget: int, words: str | None
) -> None:
    folder = made(tmp_path, "samples=50,mean_length=20,min_length=6,max_length=40")
    packing = Packing(max_batch_len=budget, effective_batch_size=4)
    said = refused(folder, packing, seq_len=seq_len)
    assert said is None if words is None else re.search(words, str(said))


def test_a_set_whose_loss_is_the_assistant_s_needs_whole_samples(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"messages": talk}) + "\n")
    request = PrepareRequest(
        source=str(tmp_path / "talks.jsonl"),
        field="messages",
        is_conversation=True,
        loss_on="assistant",
        out=tmp_path / "set",
    )
    folder = prepare(request).folder
    said = str(refused(folder))
    assert "a loss of an assistant's tokens alone" in said
    assert "packing: {max_batch_len" in said
    packing = Packing(max_batch_len=1000, effective_batch_size=4)
    assert refused(folder, packing, seq_len=1000) is None
