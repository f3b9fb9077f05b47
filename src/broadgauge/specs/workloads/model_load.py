"""Which model is loaded: from which files, read how, and by whom?"""

from typing import Literal

from pydantic import model_validator

from broadgauge.messages.storage import AskedCache, ModelFormat
from broadgauge.messages.vocabulary import DataType
from broadgauge.specs.base import placed_error
from broadgauge.specs.workloads.gpt import DATA_TYPE_BYTES, GptModel
from broadgauge.specs.workloads.storage import StorageWorkload
from broadgauge.specs.workloads.trained_model import TrainedModel


class ModelLoadWorkload(StorageWorkload):
    """A model's weights are read into the memory in which ranks train it."""

    phase: Literal["load"]
    """Which phase: says which further keys the entry has."""
    model: TrainedModel = GptModel()
    """Whose weights are loaded, as in a training: by a known name or by numbers. They are random
    bits."""
    dtype: DataType = "bfloat16"
    """Of the weights, in the files and on the ranks."""
    strategy: Literal["ddp", "fsdp"] = "fsdp"
    """What the ranks hold then: `ddp` each all of it, `fsdp` each a shard."""
    format: ModelFormat = "safetensors"
    """safetensors and torch (torch.save): one file. distributed: torch.distributed.checkpoint, of
    which each rank reads what it holds."""
    mapped: bool | None = None
    """Is the file mapped into memory, and read where it is touched, or read whole? null: as its
    library does where nothing is said: safetensors maps, torch.load reads."""
    readers: Literal["every_rank", "rank_0"] = "every_rank"
    """Who reads the file. rank_0: it sends each tensor to the others (broadcast)."""
    cache: AskedCache = "cold"
    """What the reads are to find in memory: nothing of the files, or all. What they did find is
    proven, or `unknown`."""

    @model_validator(mode="after")
    def _each_rank_reads_its_part(self) -> "ModelLoadWorkload":
        if self.format == "distributed":
            for key, is_asked in (
                ("mapped", self.mapped is not None),
                ("readers", self.readers == "rank_0"),
            ):
                if is_asked:
                    raise placed_error(
                        "of a distributed checkpoint each rank reads what it holds",
                        (key,),
                        f"leave `{key}` out, or `format: safetensors`",
                    )
        return self

    @property
    def is_mapped(self) -> bool:
        return self.format == "safetensors" if self.mapped is None else self.mapped

    @property
    def asked_cache(self) -> AskedCache | None:
        return self.cache

    @property
    def model_in_words(self) -> str | None:
        return self.model.named_in_words

    @property
    def writes(self) -> int:
        return 1

    @property
    def reads(self) -> int:
        return self.repetitions + 1

    def files_bytes(self, world_size: int) -> int:
        """However many ranks there are; nodes that share no path have a copy each."""
        del world_size
        return self.model_bytes

    def node_bytes(self, world_size: int, nodes: int) -> int:
        """Any of them reads all of it."""
        del nodes
        return self.files_bytes(world_size)

    @property
    def model_bytes(self) -> int:
        """Of the weights. A file has names and sizes beside them."""
        return self.model.shape.parameters * DATA_TYPE_BYTES[self.dtype]

    @property
    def moved_bytes(self) -> int:
        return self.model_bytes if self.readers == "rank_0" else 0
