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

_BATCHES_IN_A_POOL = 50


class FeatureSource:
    """Features held in memory, served as batches; the same in every epoch.

    ``group_lengths`` puts similar lengths into one batch: little padding, but batches that are less of a mixture.
    """

    def __init__(self, features: Sequence[Feature], *, pad_id: int, group_lengths: bool = True) -> None:
        self.features = features
        self.pad_id = pad_id
        lengths = np.array([len(feature) for feature in features], dtype=np.int64)
        self.lengths: NDArray[np.int64] | None = lengths if group_lengths else None

    def __len__(self) -> int:
        return len(self.features)

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """The features at ``indices``; ``epoch`` changes nothing."""
        return collate([self.features[index] for index in indices], pad_id=self.pad_id)


def batches_in_epoch(source: BatchSource, batch_size: int) -> int:
    """How many batches an epoch has, the short last one included."""
    return -(-len(source) // batch_size)


def batch_indices(source: BatchSource, batch_size: int, *, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
    """The examples of batch ``step`` of an epoch: a shuffle, with similar lengths put together.

    Fifty batches' worth of shuffled examples are sorted by length and cut into batches, and those batches
    are taken in shuffled order: little padding, and still a new mixture every epoch. The short last batch
    of an epoch is kept.
    """
    if source.lengths is None:
        places = np.arange(step * batch_size, min((step + 1) * batch_size, len(source)))
        return permute(places, len(source), seed=seed, epoch=epoch)
    pool, place = divmod(step, _BATCHES_IN_A_POOL)
    start = pool * _BATCHES_IN_A_POOL * batch_size
    stop = min(start + _BATCHES_IN_A_POOL * batch_size, len(source))
    members = permute(np.arange(start, stop), len(source), seed=seed, epoch=epoch)
    members = members[np.argsort(source.lengths[members], kind="stable")]
    batches = -(-len(members) // batch_size)
    place = int(permute(np.array([place]), batches, seed=seed + pool, epoch=epoch)[0])
    return members[place * batch_size : (place + 1) * batch_size]
