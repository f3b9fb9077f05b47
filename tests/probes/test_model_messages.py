"""Are the messages computed from a model's shape those that torch makes of the built model?"""

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

from broadgauge.messages.adapters import Adapters, trained_parameters  # noqa: E402
from broadgauge.probes.training.adapters import adapt  # noqa: E402
from broadgauge.probes.training.building import model_of  # noqa: E402
from broadgauge.specs.workloads.lora import Lora  # noqa: E402
from broadgauge.specs.workloads.model_messages import (  # noqa: E402
    ddp_buckets,
    fsdp_units,
    gradient_elements,
)
from broadgauge.specs.workloads.workload import (  # noqa: E402
    GptModel,
    LlamaModel,
    ModelMessages,
    TrainedModel,
)

pytestmark = pytest.mark.measuring
SMALL = GptModel(layers=3, hidden=64, heads=2, seq_len=16)
LARGE = GptModel(layers=4, hidden=384, heads=4, seq_len=4, vocabulary=3000)
"""33 MB of gradients: more than DDP's two first buckets."""
LLAMA = LlamaModel(kind="llama", layers=3, hidden=64, heads=4, kv_heads=2, seq_len=16)
LARGE_LLAMA = LlamaModel(
    kind="llama", layers=4, hidden=384, heads=4, ffn_hidden=1024, seq_len=4, vocabulary=3000
)
FURTHER = LARGE_LLAMA.model_copy(
    update={"bias": "all", "norms_per_layer": 4, "norms_queries_and_keys": True, "tied_head": True}
)
MIXTURE = LARGE_LLAMA.model_copy(update={"hidden": 96, "experts": 6, "experts_per_token": 2})
BIASED_MIXTURE = MIXTURE.model_copy(update={"bias": "all", "layers": 2})
GPTS = st.builds(
    GptModel,
    tied_head=st.booleans(),
    layers=st.integers(1, 20),
    hidden=st.integers(1, 60).map(lambda n: 8 * n),
    heads=st.just(2),
    seq_len=st.integers(1, 300),
    vocabulary=st.integers(256, 60_000),
)
LLAMAS = st.builds(
    LlamaModel,
    kind=st.just("llama"),
    tied_head=st.booleans(),
    layers=st.integers(1, 20),
    hidden=st.integers(1, 60).map(lambda n: 8 * n),
    heads=st.just(2),
    kv_heads=st.sampled_from((1, 2)),
    ffn_hidden=st.integers(1, 250).map(lambda n: 8 * n),
    vocabulary=st.integers(256, 60_000),
    bias=st.sampled_from(("none", "qkv", "attention", "all")),
    norms_per_layer=st.sampled_from((2, 4)),
    norms_queries_and_keys=st.booleans(),
)
MIXTURES = st.builds(
    LlamaModel,
    kind=st.just("llama"),
    layers=st.integers(1, 20),
    hidden=st.integers(1, 60).map(lambda n: 8 * n),
    heads=st.just(2),
    ffn_hidden=st.integers(1, 250).map(lambda n: 8 * n),
    vocabulary=st.integers(256, 60_000),
    bias=st.sampled_from(("none", "attention", "all")),
    experts=st.sampled_from((2, 32)),
    experts_per_token=st.just(2),
)
MODELS = GPTS | LLAMAS | MIXTURES


@pytest.fixture
def alone():
    """A process group of one rank."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def one_of_two():
    """The first rank of two, over a group that sends nothing."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


def built(spec: TrainedModel, adapters: Adapters | None = None) -> torch.nn.Module:
    """Its weights all alike: only sizes matter."""
    model = model_of(spec.shape)
    if adapters is not None:
        adapt(model, adapters, torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.01)
    return model


def train_two_steps(model: torch.nn.Module, shape: TrainedModel) -> None:
    tokens = torch.zeros(1, shape.seq_len, dtype=torch.long)
    for _ in range(2):
        model(tokens, tokens).backward()


@pytest.mark.parametrize("cap_bytes", [None, 2**16, 2**20, 25 * 2**20])
@pytest.mark.parametrize(
    "shape", [SMALL, LARGE, LLAMA, LARGE_LLAMA, FURTHER, MIXTURE, BIASED_MIXTURE]
)
def test_buckets_are_those_that_ddp_makes(alone, shape, cap_bytes):
    sizes = buckets_of(built(shape), shape, cap_bytes)
    assert ddp_buckets(gradient_elements(shape), cap_bytes) == sizes


def buckets_of(plain: torch.nn.Module, shape: TrainedModel, cap_bytes: int | None) -> list[int]:
    """Elements of each bucket, as DDP sent them in its second step."""
    cap_mb = None if cap_bytes is None else cap_bytes / 2**20
    model = DistributedDataParallel(plain, bucket_cap_mb=cap_mb)
    sizes: list[int] = []

    def note(state: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        if bucket.index() == 0:
            sizes.clear()
        sizes.append(bucket.buffer().numel())
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, note)
    train_two_steps(model, shape)
    return sizes


@pytest.mark.parametrize("lora", [Lora(rank=2), Lora(rank=1, targets=("down", "projection"))])
@pytest.mark.parametrize("shape", [SMALL, LLAMA])
def test_buckets_of_adapters_are_those_that_ddp_makes(alone, shape, lora):
    """All of a training that freezes the rest."""
    adapters = lora.adapters(shape.shape)
    sizes = buckets_of(built(shape, adapters), shape, cap_bytes=400)
    assert len(sizes) > shape.layers
    assert ddp_buckets(gradient_elements(shape, adapters), 400) == sizes
    assert sum(sizes) == trained_parameters(shape.shape, adapters)


@pytest.mark.parametrize(
    ("shape", "lora"),
    [
        (SMALL, None),
        (LLAMA, None),
        (FURTHER, None),
        (BIASED_MIXTURE, None),
        (LLAMA, Lora(rank=2)),
        (LLAMA, Lora(rank=3)),
    ],
)
def test_units_are_those_that_fsdp_gathers(one_of_two, shape, lora):
    """The other rank is not there: what it would send is left as it is."""
    adapters = None if lora is None else lora.adapters(shape.shape)
    model = built(shape, adapters)
    mesh = init_device_mesh("cpu", (2,))
    gathered: list[int] = []

    class Noting:
        def allocate(self, size, *, dtype, device):
            return torch.empty(*size, dtype=dtype, device=device)

        def __call__(self, output_tensor, input_tensor, group, async_op=False):
            gathered.append(output_tensor.numel())

    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    for unit in (fully_shard(model, mesh=mesh), *model.layers):
        unit.set_custom_all_gather(Noting())
    train_two_steps(model, shape)
    assert set(gathered) == set(fsdp_units(shape, adapters, shards=2))


@given(MODELS, st.none() | st.integers(1, 2**26))
def test_every_parameter_is_sent_once(shape, cap_bytes):
    elements = gradient_elements(shape)
    assert sum(elements) == shape.parameters
    buckets = ddp_buckets(elements, cap_bytes)
    assert sum(buckets) == sum(fsdp_units(shape)) == shape.parameters
    largest_bytes = 4 * max(elements)
    assert all(4 * bucket < (cap_bytes or 25 * 2**20) + largest_bytes for bucket in buckets)


@given(MODELS, st.sampled_from(("ddp", "fsdp", "hsdp")))
def test_sizes_are_distinct_and_halved_in_bfloat16(shape, strategy):
    sizes = ModelMessages(model=shape, strategy=strategy).sizes_bytes()
    assert list(sizes) == sorted(set(sizes))
    halved = ModelMessages(model=shape, strategy=strategy, dtype="bfloat16").sizes_bytes()
    assert [2 * size for size in halved] == list(sizes)
