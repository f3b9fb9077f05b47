"""Does a compiled training train as a plain one does, and say how long it compiled?"""

import functools
import shutil
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from broadgauge.messages.rank import TrainSummary  # noqa: E402
from broadgauge.probes.training import compiling  # noqa: E402
from broadgauge.probes.trial import RefusedError  # noqa: E402
from broadgauge.specs.workloads.lora import Lora  # noqa: E402
from broadgauge.specs.workloads.workload import Packing, SyntheticData  # noqa: E402

from .harness import Ranks  # noqa: E402
from .training_launch import LLAMA, MIXTURE, TINY, Launch  # noqa: E402
from .training_tasks import trainer_of  # noqa: E402

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler: apt install g++"),
]
STEPS = {"steps": 20, "warm_up_steps": 2, "block_steps": 10}


@pytest.mark.parametrize("model", [LLAMA, pytest.param(TINY, marks=pytest.mark.thorough)])
def test_one_rank_compiles_and_trains_as_a_plain_one(model, tmp_path):
    with Ranks(1, tmp_path) as ranks:
        launch = Launch(ranks)
        plain = launch.train(**STEPS, model=model)
        compiled = launch.train(compile=True, **STEPS, model=model)
        assert compiled.series["loss"] == pytest.approx(plain.series["loss"], abs=1e-4)
        assert "compile_s" not in plain.measurement.metrics
        compile_s = compiled.measurement.metrics["compile_s"]
        assert compile_s > 0
        assert launch.said[0].last(TrainSummary).compile_s == compile_s


PACKED = {
    "data": {"samples": 30, "mean_length": 7},
    "packing": {"max_batch_len": 20, "effective_batch_size": 8},
}
PACKED_TASK = {
    "data": SyntheticData.model_validate(PACKED["data"]),
    "packing": Packing.model_validate(PACKED["packing"]),
}


@pytest.mark.parametrize(
    "lora",
    [None, pytest.param({"rank": 2, "dropout_ratio": 0.1}, marks=pytest.mark.thorough)],
)
def test_packed_shapes_are_compiled_before_the_first_step(lora, monkeypatch):
    """Rows and lengths of all kinds come, single rows among them, and nothing is compiled any more;
    the weights are those that were drawn. (Without the compiler behind torch's: it is as often
    asked, and takes a minute.)"""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    trainer = trainer_of(compile=True, model=LLAMA, lora=lora, **PACKED)
    drawn = [p.detach().clone() for p in trainer.model.parameters()]
    trainer.compile_ahead()
    assert all(map(torch.equal, drawn, trainer.model.parameters()))
    assert all(p.grad is None for p in trainer.model.parameters())
    compile_s = trainer.compile_s
    assert compile_s > 0
    trainer.timed_steps(range(8))
    batches = [batch for step in range(8) for batch in trainer.micro_batches(step)]
    assert len({tuple(batch.tokens.shape) for batch in batches}) > 4
    assert {1, 2, 3} <= {len(batch.tokens) for batch in batches}
    assert trainer.compile_s == compile_s


@pytest.mark.thorough("compiling on two ranks")
@pytest.mark.parametrize(
    "way",
    [
        {"strategy": "ddp"},
        {"strategy": "ddp", "accumulation": 2, "gradient_dtype": "bfloat16"},
        {"strategy": "fsdp", "accumulation": 2},
        {"strategy": "fsdp", "dtype": "bfloat16"},
        {"strategy": "ddp", "dtype": "bfloat16", "model": MIXTURE},
        {"strategy": "fsdp", "lora": Lora(rank=2), "activation_checkpointing": "selective"},
        {"strategy": "ddp", "lora": Lora(rank=2), "activation_checkpointing": "full"},
        PACKED_TASK | {"strategy": "ddp"},
        PACKED_TASK | {"strategy": "fsdp"},
    ],
)
def test_two_ranks_compile_and_train_as_plain_ones(way, tmp_path):
    tolerance = 1e-4 if "bfloat16" not in way.values() else 0.02
    with Ranks(2, tmp_path) as ranks:
        launch = Launch(ranks)
        keys = STEPS | {"model": LLAMA} | way
        plain = launch.train(**keys)
        compiled = launch.train(**keys, compile=True)
        assert compiled.series["loss"] == pytest.approx(plain.series["loss"], abs=tolerance)


def test_a_missing_compiler_is_said_before_the_training_starts(monkeypatch):
    from torch._inductor import cpp_builder
    from torch._inductor.exc import InvalidCxxCompiler

    def missing():
        raise InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)
    with pytest.raises(RefusedError, match=r"needs a C\+\+ compiler, and none is here"):
        compiling.begin_compiling(torch.device("cpu"))
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: False)
    with pytest.raises(RefusedError, match="needs Triton"):
        compiling.begin_compiling(SimpleNamespace(type="cuda"))
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(RefusedError, match="needs a C compiler"):
        compiling.begin_compiling(SimpleNamespace(type="cuda"))
