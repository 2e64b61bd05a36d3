"""What a token is before its context is known.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.errors import usage_error


class Embeddings(nn.Module):
    """Sum of three learned tables (word, position, segment), then LayerNorm, then dropout (BERT, figure 2).

    ``first_position`` is the row of the table of positions that the first token of every row has.
    """

    def __init__(
        self,
        *,
        word: nn.Embedding,
        position: nn.Embedding,
        segment: nn.Embedding,
        norm: nn.LayerNorm,
        dropout: nn.Module,
        first_position: int = 0,
    ) -> None:
        super().__init__()
        self.word = word
        self.position = position
        self.segment = segment
        self.first_position = first_position
        self.norm = norm
        self.dropout = dropout

    def forward(self, input_ids: Int[Tensor, "B T"], segment_ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """One vector a token; token t of every row has position t, counted from the first."""
        places = _place(input_ids, self.position, self.first_position)
        summed = self.word(input_ids) + self.segment(segment_ids) + places
        states: Tensor = self.dropout(self.norm(summed))
        return states


class PlainEmbeddings(nn.Module):
    """Sum of two learned tables, then dropout: a token knows no segment and is not normalised (GPT)."""

    def __init__(self, *, word: nn.Embedding, position: nn.Embedding, dropout: nn.Module) -> None:
        super().__init__()
        self.word = word
        self.position = position
        self.dropout = dropout

    def forward(self, input_ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """One vector a token; token t of every row has position t."""
        states: Tensor = self.dropout(self.word(input_ids) + _place(input_ids, self.position))
        return states


def _place(input_ids: Int[Tensor, "B T"], table: nn.Embedding, first: int = 0) -> Float[Tensor, "T H"]:
    """The vectors of the positions; a row with more tokens than there are is an error of the user."""
    tokens, positions = input_ids.shape[1], table.num_embeddings - first
    if tokens > positions:
        raise usage_error(
            f"a batch has rows of {tokens} tokens and the model has {positions} positions; cut the text shorter."
        )
    return table.weight[first : first + tokens]
