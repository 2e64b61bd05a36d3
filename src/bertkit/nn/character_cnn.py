"""One vector for a word from its characters (Kim et al., arXiv 1508.06615).

Letters: N words, C characters a word, F filters of all widths together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class CharacterCnn(nn.Module):
    """Filters of several widths slide over a word; each gives the most that it found anywhere, activated.

    The place of a filter is anywhere in the C characters, what fills up a short word included: a word has to be as long
    as the words of the training.
    """

    def __init__(self, *, embedding: nn.Embedding, convolutions: Iterable[nn.Conv1d], activation: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.convolutions = nn.ModuleList(convolutions)
        self.activation = activation

    def reset_parameters(self) -> None:
        """First values, which torch gives: normal for the characters, uniform by fan-in for the filters."""
        self.embedding.reset_parameters()
        for convolution in self._filters():
            convolution.reset_parameters()

    def count_macs(self, length: int) -> int:
        """The multiplications of one word of so many characters."""
        return sum((length - each.weight.shape[2] + 1) * each.weight.numel() for each in self._filters())

    def forward(self, characters: Int[Tensor, "N C"]) -> Float[Tensor, "N F"]:
        """Each word by itself, the widths side by side."""
        letters = self.embedding(characters).transpose(1, 2)
        found = [convolution(letters).amax(dim=2) for convolution in self.convolutions]
        new_states: Tensor = self.activation(torch.cat(found, dim=1))
        return new_states

    def _filters(self) -> Iterator[nn.Conv1d]:
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            yield convolution
