"""Which models does the reference trainer train?"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from broadgauge.specs.base import InOneWord
from broadgauge.specs.workloads.gpt import GptModel
from broadgauge.specs.workloads.llama import LlamaModel


def _kind(data: Any) -> Any:
    """GPT where nothing is said: it was the only one once, and keeps the keys of its cases."""
    return data.get("kind", "gpt") if isinstance(data, dict) else getattr(data, "kind", "gpt")


TrainedModel = Annotated[
    Annotated[GptModel, Tag("gpt")] | Annotated[LlamaModel, Tag("llama")],
    Discriminator(_kind),
    BeforeValidator(InOneWord("like")),
]
