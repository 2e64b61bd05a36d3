"""Input embeddings of tokens.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.errors import usage_error


class InputEmbeddings(nn.Module):
    """What turns tokens into the states that the first block reads. Those of an encoder of your own derive from it."""

    word: nn.Embedding
    """The table of token embeddings."""


class Embeddings(InputEmbeddings):
    """``dropout(LayerNorm(word[id] + position[t] + segment[s]))`` (BERT, figure 2).

    ``first_position`` is the row of the position table that the first token of every row uses (RoBERTa: pad_id + 1).
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
        """One vector per token. Token t of every row has position ``first_position + t``, also on padding."""
        positions = _look_up_positions(input_ids, self.position, self.first_position)
        summed = self.word(input_ids) + self.segment(segment_ids) + positions
        states: Tensor = self.dropout(self.norm(summed))
        return states


class TokenEmbeddings(InputEmbeddings):
    """``dropout(LayerNorm(word[id]))``: attention knows the positions, as with rotary embeddings (ModernBERT)."""

    def __init__(self, *, word: nn.Embedding, norm: nn.LayerNorm, dropout: nn.Module) -> None:
        super().__init__()
        self.word = word
        self.norm = norm
        self.dropout = dropout

    def forward(self, input_ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """One vector per token."""
        states: Tensor = self.dropout(self.norm(self.word(input_ids)))
        return states


class PlainEmbeddings(InputEmbeddings):
    """``dropout(word[id] + position[t])``: no segments and no LayerNorm (GPT)."""

    def __init__(self, *, word: nn.Embedding, position: nn.Embedding, dropout: nn.Module) -> None:
        super().__init__()
        self.word = word
        self.position = position
        self.dropout = dropout

    def forward(self, input_ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """One vector per token. Token t of every row has position t."""
        states: Tensor = self.dropout(self.word(input_ids) + _look_up_positions(input_ids, self.position))
        return states


def _look_up_positions(input_ids: Int[Tensor, "B T"], table: nn.Embedding, first: int = 0) -> Float[Tensor, "T H"]:
    """The vectors of positions ``first`` to ``first + T - 1``; a usage error if the table has fewer."""
    tokens = input_ids.shape[1]
    check_length(tokens, table.num_embeddings - first)
    # A slice that is broadcast over the rows; a lookup would copy it once per row.
    return table.weight[first : first + tokens]


def check_length(tokens: int, positions: int) -> None:
    """Raise a usage error if rows of ``tokens`` are longer than a model with ``positions`` can read."""
    if tokens > positions:
        raise usage_error(
            f"a batch has rows of {tokens} tokens, but the model has {positions} positions; shorten the text."
        )
