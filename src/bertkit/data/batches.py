"""In which order examples are seen, in which company, and who makes the batches.

The order is a pure function of (seed, epoch): any process can say which examples are in batch 7 of epoch 3 without
having seen the batches before it. So any number of threads may make them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import Batch, Feature
from bertkit.contracts import BatchSource
from bertkit.data.features import collate
from bertkit.rng import permute

T = TypeVar("T")


@runtime_checkable
class OrderedSource(BatchSource, Protocol):
    """A source that tells itself what is in a batch, as each row goes on where that of the batch before ended."""

    def num_batches(self, batch_size: int) -> int:
        """Batches in an epoch."""
        ...

    def order(self, batch_size: int, step: int) -> NDArray[np.int64]:
        """The examples of batch ``step``, row by row."""
        ...


class FeatureSource:
    """Features held in memory, served as batches; the same in every epoch.

    ``label`` gives a batch labels that are made of its own tokens.
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
        """The features at ``indices``; ``epoch`` changes nothing."""
        batch = collate([self.features[index] for index in indices], pad_id=self.pad_id)
        return batch if self.label is None else self.label(batch)


def batches_in_epoch(source: BatchSource, batch_size: int) -> int:
    """How many batches an epoch has, the short last one included."""
    if isinstance(source, OrderedSource):
        return source.num_batches(batch_size)
    return -(-len(source) // batch_size)


def batch_indices(source: BatchSource, batch_size: int, *, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
    """The examples of batch ``step`` of an epoch: the next so many of a shuffle; the last batch may be short.

    Lengths are mixed: batches of similar length would save nothing, as padding is not computed. A source with an order
    of its own has that in every epoch.
    """
    if isinstance(source, OrderedSource):
        return source.order(batch_size, step)
    places = np.arange(step * batch_size, min((step + 1) * batch_size, len(source)))
    return permute(places, len(source), seed=seed, epoch=epoch)


def prefetch(calls: Iterable[Callable[[], T]], workers: int) -> Generator[T, None, None]:
    """What every call returns, in order; so many threads make what is next while the caller is busy with the last.

    Without workers each call is made when its turn comes. What a call raises is raised in its turn.
    """
    if not workers:
        yield from (call() for call in calls)
        return
    threads = ThreadPoolExecutor(workers, thread_name_prefix="loader")
    begun: deque[Future[T]] = deque()
    try:
        for call in calls:
            begun.append(threads.submit(call))
            if len(begun) > workers:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)
