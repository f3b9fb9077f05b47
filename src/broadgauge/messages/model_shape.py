"""How many parameters has the model that is trained, and how many FLOPs is a token?"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GptShape:
    """Of a decoder-only transformer: GPT-2's block, pre-norm, GELU, learned positions."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    seq_len: int

    @property
    def parameters(self) -> int:
        """How many parameters? 12 L H² + 13 L H for the blocks, embeddings tied to the head.

        A block: attention 4H² + 4H, MLP 8H² + 5H, two norms 4H. Source: Radford et al. 2019
        (GPT-2), counted; tests/probes compares it with the built model.
        """
        blocks = self.layers * (12 * self.hidden**2 + 13 * self.hidden)
        embeddings = (self.vocabulary + self.seq_len) * self.hidden
        return blocks + embeddings + 2 * self.hidden

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token, forward and backward: 6N + 12·L·H·Q·T, H·Q being the hidden size.

        Source: Chowdhery et al. 2022 (PaLM), appendix B; N without the position embedding,
        which multiplies nothing.
        """
        weights = self.parameters - self.seq_len * self.hidden
        return 6.0 * weights + 12.0 * self.layers * self.hidden * self.seq_len
