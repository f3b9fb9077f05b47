"""How is attention computed, by name?

Shapes: B sequences, N heads, M heads of keys and values, T tokens, D a head's width.
"""

import math
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from broadgauge.messages.vocabulary import AttentionName
from broadgauge.probes.trial import RefusedError


def attend(query_bntd: Any, key_bmtd: Any, value_bmtd: Any, way: AttentionName) -> Any:
    """Causal attention, [B, N, T, D]. Heads of queries share those of keys where these are fewer.

    - `sdpa`: torch's choice among its fused kernels and its own composition of them.
    - `flash`: torch's flash attention; raises RuntimeError where it has none for these tensors.
      Source: Dao et al. 2022 (arXiv 2205.14135).
    - `eager`: the matrix of scores is made, masked and normalised in float32, as Hugging Face's
      eager attention does it. Source: huggingface/transformers, `eager_attention_forward`.
    """
    if way == "eager":
        return _attend_eagerly(query_bntd, key_bmtd, value_bmtd)
    is_grouped = key_bmtd.shape[1] < query_bntd.shape[1]
    if way == "sdpa":
        return functional.scaled_dot_product_attention(
            query_bntd, key_bmtd, value_bmtd, is_causal=True, enable_gqa=is_grouped
        )
    if is_grouped and not query_bntd.is_cuda:  # torch has no flash attention of grouped heads here
        key_bmtd, value_bmtd = _for_each_query(query_bntd, key_bmtd, value_bmtd)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return functional.scaled_dot_product_attention(
            query_bntd, key_bmtd, value_bmtd, is_causal=True, enable_gqa=is_grouped
        )


def _attend_eagerly(query_bntd: Any, key_bmtd: Any, value_bmtd: Any) -> Any:
    key_bntd, value_bntd = _for_each_query(query_bntd, key_bmtd, value_bmtd)
    scores_bntt = query_bntd @ key_bntd.transpose(2, 3) / math.sqrt(query_bntd.shape[3])
    tokens = query_bntd.shape[2]
    is_later_tt = torch.ones(tokens, tokens, dtype=torch.bool, device=query_bntd.device).triu(1)
    scores_bntt = scores_bntt.masked_fill(is_later_tt, -math.inf)
    return scores_bntt.softmax(-1, dtype=torch.float32).to(value_bntd.dtype) @ value_bntd


def _for_each_query(query_bntd: Any, *shared_bmtd: Any) -> Any:
    """Heads that queries share, as often as they are used."""
    heads = query_bntd.shape[1]
    return tuple(each.repeat_interleave(heads // each.shape[1], dim=1) for each in shared_bmtd)


def refuse_missing_flash(head_dim: int, dtype: Any, device: Any) -> None:
    """Has torch a flash attention of such heads here, forward and backward? Raises RefusedError."""
    head = torch.zeros(1, 1, 8, head_dim, dtype=dtype, device=device, requires_grad=True)
    try:
        attend(head, head, head, "flash").sum().backward()
    except RuntimeError as error:
        name = str(dtype).removeprefix("torch.")
        raise RefusedError(
            f"`attention: flash`: torch {torch.__version__} has no flash attention of {name} heads "
            f"{head_dim} wide on this {device.type} device: `attention: sdpa` takes what there is"
            + ("; flash attention on GPUs needs `dtype: bfloat16`" if name == "float32" else "")
        ) from error
