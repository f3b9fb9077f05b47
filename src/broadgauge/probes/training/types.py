"""What do the words of an experiment mean to torch?"""

from typing import Any

import torch

from broadgauge.messages.vocabulary import DataType


def torch_type(name: DataType) -> Any:
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]
