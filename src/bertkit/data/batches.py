"""The order of examples, their division into batches, and prefetching of batches.

The order is a pure function of (seed, epoch): any process can compute which examples are in batch 7 of epoch 3 without
the batches before it. So any number of threads may make batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import Batch, Feature
from bertkit.contracts import BatchSource, OrderedSource
from bertkit.data.features import collate
from bertkit.rng import permute

T = TypeVar("T")


class FeatureSource:
    """Features in memory as a source of batches, the same in every epoch.

    ``label`` adds labels that are computed from the tokens of a batch.
    """

    def __init__(
        self, features: Sequence[Feature], *, pad_id: int, label: Callable[[Batch], Batch] | None = None
    ) -> None:
        self.features = features
        self.pad_id = pad_id
        self.label = label

    def __len__(self) -> int:
        return len(self.features)

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """The features at ``indices``; ``epoch`` is ignored."""
        batch = collate([self.features[index] for index in indices], pad_id=self.pad_id)
        return batch if self.label is None else self.label(batch)


def batches_in_epoch(source: BatchSource, batch_size: int) -> int:
    """Number of batches in an epoch, including the last one, which may be short."""
    if isinstance(source, OrderedSource):
        return source.num_batches(batch_size)
    return -(-len(source) // batch_size)


def batch_indices(source: BatchSource, batch_size: int, *, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
    """(B,) the indices of the examples in batch ``step`` of an epoch; the last batch may be short.

    An ``OrderedSource`` decides them itself. For other sources they are the next ``batch_size`` entries of a
    permutation that differs in every epoch.
    """
    if isinstance(source, OrderedSource):
        return source.order(batch_size, step)
    # Examples of similar length are not grouped: of a Transformer's layers only attention computes padding.
    positions = np.arange(step * batch_size, min((step + 1) * batch_size, len(source)))
    return permute(positions, len(source), seed=seed, epoch=epoch)


def prefetch(calls: Iterable[Callable[[], T]], workers: int) -> Generator[T, None, None]:
    """The results of ``calls`` in order; ``workers`` threads compute the next ones while the caller uses the last.

    With 0 workers each call is made when its result is requested. If a call raises, the exception is raised in place of
    its result.
    """
    if not workers:
        yield from (call() for call in calls)
        return
    threads = ThreadPoolExecutor(workers, thread_name_prefix="loader")
    pending: deque[Future[T]] = deque()
    try:
        for call in calls:
            pending.append(threads.submit(call))
            # One more than there are threads, so that no thread waits for the caller to take a result.
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)
