"""Is a prepared set that a training reads looked at before any rank starts?"""

import json
from pathlib import Path

import pytest

from broadgauge.running.kinds.training import TrainingInRunning
from broadgauge.specs.errors import InputError
from broadgauge.specs.prepared_data import Packing
from broadgauge.specs.workload import GptModel, PreparedData, TrainWorkload
from broadgauge.tokenizing.preparing import prepare
from broadgauge.tokenizing.request import PrepareRequest
from broadgauge.tokenizing.synthesis import parse_synthesis, synthesize


def check(folder: Path, vocabulary: int = 300) -> None:
    train = TrainWorkload(
        kind="train", data=PreparedData(prepared="set"), model=GptModel(vocabulary=vocabulary)
    )
    TrainingInRunning(train).check_files(folder, is_prepared=False)


def test_a_set_that_fits_the_model_passes(tmp_path: Path) -> None:
    synthesize(parse_synthesis("count=5,mean=5,vocabulary=300"), tmp_path / "set")
    check(tmp_path)
    with pytest.raises(InputError, match="has 300 tokens, and the model's vocabulary is 256") as no:
        check(tmp_path, vocabulary=256)
    assert no.value.hint == "model: {vocabulary: 300}"


def test_one_that_is_not_there_or_torn_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`data\.prepared` of train: `.*set` is no folder"):
        check(tmp_path)
    synthesize(parse_synthesis("count=5,mean=5"), tmp_path / "set")
    (tmp_path / "set/tokens.bin").write_bytes(b"")
    with pytest.raises(InputError, match="the set is damaged"):
        check(tmp_path)


@pytest.mark.parametrize(
    ("seq_len", "budget", "is_refused"), [(8, 40, True), (8, 4, False), (40, 40, False)]
)
def test_samples_that_the_budget_takes_and_the_model_does_not_are_named(
    tmp_path: Path, seq_len: int, budget: int, is_refused: bool
) -> None:
    synthesize(parse_synthesis("count=50,mean=20,min=6,max=40,vocabulary=256"), tmp_path / "set")
    train = TrainWorkload(
        kind="train",
        data=PreparedData(prepared="set"),
        model=GptModel(seq_len=seq_len),
        packing=Packing(max_batch_len=budget, effective_batch_size=4),
    )
    asked = TrainingInRunning(train)
    if not is_refused:
        asked.check_files(tmp_path, is_prepared=False)
        return
    with pytest.raises(InputError, match=r"has samples of .* and the model takes 8") as no:
        asked.check_files(tmp_path, is_prepared=False)
    assert no.value.hint is not None
    assert no.value.hint.endswith("or prepare it with --max-length 8")


def test_a_set_whose_loss_is_the_assistant_s_needs_whole_samples(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"messages": talk}) + "\n")
    prepare(
        PrepareRequest(
            source=str(tmp_path / "talks.jsonl"),
            field="messages",
            is_conversation=True,
            loss_on="assistant",
            out=tmp_path / "set",
        )
    )
    with pytest.raises(InputError, match="a loss of an assistant's tokens alone") as refused:
        check(tmp_path)
    assert "packing: {max_batch_len" in str(refused.value.hint)
