"""What a token is before its context is known: word + position + segment, normalised.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn


class Embeddings(nn.Module):
    """Sum of three learned tables, then LayerNorm, then dropout (paper, section 3 and figure 2)."""

    def __init__(
        self,
        *,
        word: nn.Embedding,
        position: nn.Embedding,
        segment: nn.Embedding,
        norm: nn.LayerNorm,
        dropout: nn.Module,
    ) -> None:
        super().__init__()
        self.word = word
        self.position = position
        self.segment = segment
        self.norm = norm
        self.dropout = dropout

    def forward(self, input_ids: Int[Tensor, "B T"], segment_ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """One vector a token; token t of every row has position t."""
        positions = self.position.weight[: input_ids.shape[1]]
        summed = self.word(input_ids) + self.segment(segment_ids) + positions
        states: Tensor = self.dropout(self.norm(summed))
        return states
