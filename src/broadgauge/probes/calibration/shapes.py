"""Which products, lengths and models are measured? Pure: a choice for GPUs and one for CPUs.

GPUs: the linear layers of blocks from 512 to 8192 wide, at the rows of a short and a long
micro-batch. CPUs: what the toy experiments use, whose rank has a core or two.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.messages.model_shape import GptShape
from broadgauge.messages.vocabulary import DataType, Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    dtype: DataType
    tokens: int
    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    dtype: DataType
    batch: int
    heads: int
    head_dim: int
    seq_len: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    model: GptShape
    dtype: DataType
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """All that is measured on one kind of device."""

    gemms: tuple[Gemm, ...]
    attention: tuple[AttentionShape, ...]
    copy_bytes: tuple[int, ...]
    optimizer: tuple[tuple[int, int], ...]
    """Parameters, and in how many tensors."""
    trainings: tuple[Training, ...]
    budget_s: float
    """Of each timing."""


def choice(device: Device) -> Choice:
    """What is measured on this kind of device?"""
    return _gpu_choice() if device == "cuda" else _cpu_choice()


def _gpu_choice() -> Choice:
    gemms = [
        *_layers("bfloat16", hiddens=(512, 1024, 2048, 4096, 8192), tokens=(2048, 8192)),
        *_layers("float32", hiddens=(512, 1024, 2048), tokens=(4096,)),
        # The head of a vocabulary like GPT-2's.
        Gemm(dtype="bfloat16", tokens=4096, inputs=1024, outputs=50_257),
    ]
    attention = [
        AttentionShape(dtype="bfloat16", batch=batch, heads=16, head_dim=head_dim, seq_len=seq_len)
        for head_dim in (64, 128)
        for batch, seq_len in ((16, 512), (8, 1024), (2, 4096), (1, 16_384))
    ]
    attention += [
        AttentionShape(dtype="float32", batch=8, heads=16, head_dim=64, seq_len=seq_len)
        for seq_len in (512, 1024)
    ]
    small = GptShape(layers=12, hidden=768, heads=12, vocabulary=50_257, seq_len=1024)
    middle = GptShape(layers=8, hidden=1024, heads=16, vocabulary=256, seq_len=512)
    large = GptShape(layers=8, hidden=2048, heads=16, vocabulary=50_257, seq_len=1024)
    return Choice(
        gemms=tuple(gemms),
        attention=tuple(attention),
        copy_bytes=(16 * 2**20, 2**30),
        optimizer=((2**20, 64), (2**28, 64)),
        trainings=(
            Training(model=small, dtype="bfloat16", batch=4),
            Training(model=middle, dtype="bfloat16", batch=8),
            Training(model=middle, dtype="float32", batch=4),
            Training(model=large, dtype="bfloat16", batch=4),
        ),
        budget_s=0.1,
    )


def _cpu_choice() -> Choice:
    gemms = [
        *_layers("float32", hiddens=(64, 128, 256, 512), tokens=(64, 512)),
        *_layers("float32", hiddens=(1024,), tokens=(64,)),
        *_layers("bfloat16", hiddens=(256,), tokens=(64,)),
    ]
    attention = [
        AttentionShape(dtype="float32", batch=batch, heads=4, head_dim=64, seq_len=seq_len)
        for batch, seq_len in ((1, 64), (4, 128), (1, 512))
    ]
    models = (
        GptShape(layers=2, hidden=128, heads=4, vocabulary=256, seq_len=64),
        GptShape(layers=4, hidden=256, heads=4, vocabulary=256, seq_len=64),
        GptShape(layers=2, hidden=512, heads=8, vocabulary=1024, seq_len=128),
    )
    return Choice(
        gemms=tuple(gemms),
        attention=tuple(attention),
        copy_bytes=(2**20, 64 * 2**20),
        optimizer=((2**18, 64), (2**23, 64)),
        trainings=tuple(Training(model=model, dtype="float32", batch=2) for model in models),
        budget_s=0.1,
    )


def _layers(
    dtype: DataType, *, hiddens: tuple[int, ...], tokens: tuple[int, ...]
) -> Iterator[Gemm]:
    """A block's smallest linear layer, the projection, and one of its largest two, the MLP's."""
    for hidden in hiddens:
        for rows in tokens:
            for outputs in (hidden, 4 * hidden):
                yield Gemm(dtype=dtype, tokens=rows, inputs=hidden, outputs=outputs)
