"""In which order examples are seen, and in which company.

Everything here is a pure function of (seed, epoch): any process can say which examples are in batch 7
of epoch 3 without having seen the batches before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertkit.contracts import Batch, BatchSource, Feature
from bertkit.data.features import collate
from bertkit.draws import permute


class FeatureSource:
    """Features held in memory, served as batches; the same in every epoch."""

    def __init__(self, features: Sequence[Feature], *, pad_id: int) -> None:
        self.features = features
        self.pad_id = pad_id

    def __len__(self) -> int:
        return len(self.features)

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """The features at ``indices``; ``epoch`` changes nothing."""
        return collate([self.features[index] for index in indices], pad_id=self.pad_id)


def batches_in_epoch(source: BatchSource, batch_size: int) -> int:
    """How many batches an epoch has, the short last one included."""
    return -(-len(source) // batch_size)


def batch_indices(source: BatchSource, batch_size: int, *, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
    """The examples of batch ``step`` of an epoch: the next so many of a shuffle; the last batch may be short.

    Lengths are mixed: batches of similar length would save nothing, as padding is not computed.
    """
    places = np.arange(step * batch_size, min((step + 1) * batch_size, len(source)))
    return permute(places, len(source), seed=seed, epoch=epoch)
