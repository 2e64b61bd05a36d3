"""A convolutional network that computes a word vector from the characters (Kim et al., arXiv 1508.06615).

    word = activation(concat_w(max_t(convolution_w(embedding(characters))[t])))        over filter widths w

Letters: N words, C characters per word, F filters of all widths together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class CharacterCnn(nn.Module):
    """Filters of several widths over the characters of a word, then the maximum over positions, then activation.

    The maximum includes the padding of a short word, as in ELMo. So C must be the same as in training.
    """

    def __init__(self, *, embedding: nn.Embedding, filters: Iterable[tuple[int, int]], activation: nn.Module) -> None:
        """``filters`` are pairs: how many characters they see, and how many there are of them."""
        super().__init__()
        self.embedding = embedding
        self.convolutions = nn.ModuleList(nn.Conv1d(embedding.embedding_dim, count, size) for size, count in filters)
        self.activation = activation

    def reset_parameters(self) -> None:
        """torch's default initialisation: normal for the character embedding, uniform by fan-in for the filters."""
        self.embedding.reset_parameters()
        for convolution in self._filters():
            convolution.reset_parameters()

    def count_macs(self, length: int) -> int:
        """Multiply-accumulate operations for one word of ``length`` characters."""
        return sum((length - each.weight.shape[2] + 1) * each.weight.numel() for each in self._filters())

    def forward(self, characters: Int[Tensor, "N C"]) -> Float[Tensor, "N F"]:
        """One vector per word; the filters of all widths are concatenated."""
        embedded = self.embedding(characters).transpose(1, 2)
        maxima = [convolution(embedded).amax(dim=2) for convolution in self.convolutions]
        new_states: Tensor = self.activation(torch.cat(maxima, dim=1))
        return new_states

    def _filters(self) -> Iterator[nn.Conv1d]:
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            yield convolution
