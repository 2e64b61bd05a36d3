"""Several prepared corpora, mixed by shares of the rows.

Nothing is copied: a row of the mixture is a row of one of its corpora, found by its index. In every epoch each corpus
gives exactly its share of the rows, in random order. It gives all of its own rows once before it repeats any; when it
begins again, that is its next epoch, with other segments. So a row is a pure function of (seed, epoch, index), like
that of a single corpus, and any number of processes resumes anywhere.

An epoch has about as many rows as all corpora together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bertkit.data.segments import RowSegments
from bertkit.data.shards import TOKENIZER, Corpus, CorpusSplit
from bertkit.errors import usage_error
from bertkit.rng import permute


@runtime_checkable
class Rows(Protocol):
    """The rows of a corpus, each a pure function of (epoch, index)."""

    def __len__(self) -> int:
        """Rows in an epoch."""
        ...

    def segments(self, epoch: int, indices: NDArray[np.int64]) -> list[RowSegments]:
        """The rows at ``indices`` in this epoch."""
        ...


@dataclass(frozen=True, eq=False)
class Mixture:
    """One split of several DATA folders with the same tokenizer, and the share of the rows from each.

    Most runs have one folder, with share 1.
    """

    corpora: tuple[Corpus, ...]
    shares: tuple[float, ...] = (1.0,)

    @classmethod
    def open(
        cls, folders: Sequence[tuple[Path, float]], split: CorpusSplit = "train", *, verify: bool = True
    ) -> Mixture:
        """Open this split of every folder, each with its share; ``verify`` as in ``Corpus.open``.

        Raises a usage error if a folder is named twice, or has another tokenizer than the first.
        """
        paths = [folder.resolve() for folder, _ in folders]
        for number, (folder, _) in enumerate(folders):
            if paths[number] in paths[:number]:
                raise usage_error(f"{folder} is named twice: DATA and the folders of --mix must all be different.")
        corpora = tuple(Corpus.open(folder, split, verify=verify) for folder, _ in folders)
        for corpus in corpora:
            check_same_tokenizer(corpus, corpora[0])
        return cls(corpora, tuple(share for _, share in folders))

    @property
    def num_tokens(self) -> int:
        """Tokens of all corpora."""
        return sum(corpus.num_tokens for corpus in self.corpora)

    def joined(self) -> Corpus:
        """The text of all corpora as one corpus, in which each token occurs once whatever the shares; for counts."""
        if len(self.corpora) == 1:
            return self.corpora[0]
        manifest = self.corpora[0].manifest
        records = [record for corpus in self.corpora for record in corpus.manifest.shards]
        return Corpus(
            folder=self.corpora[0].folder,
            manifest=dataclasses.replace(manifest, shards=tuple(records)),
            shards=tuple(shard for corpus in self.corpora for shard in corpus.shards),
        )

    def with_documents(self, least: int) -> Mixture | None:
        """The mixture of the corpora that have ``least`` documents or more in this split; None if none has."""
        kept = [
            (each, share) for each, share in zip(self.corpora, self.shares, strict=True) if each.num_documents >= least
        ]
        return Mixture(*map(tuple, zip(*kept, strict=True))) if kept else None

    def check_untouched(self) -> None:
        """Raise if a shard was written after it was opened."""
        for corpus in self.corpora:
            corpus.check_untouched()


def check_same_tokenizer(corpus: Corpus, first: Corpus) -> None:
    """Raise a usage error if ``corpus`` was prepared with another tokenizer than ``first``."""
    if corpus.manifest.tokenizer != first.manifest.tokenizer:
        raise usage_error(
            f"{corpus.folder} was prepared with another tokenizer than {first.folder}; prepare it with --tokenizer "
            f"{first.folder / TOKENIZER}."
        )


class MixedRows:
    """Rows of several corpora; ``shares`` are relative to each other, and each gives at least one row per epoch."""

    def __init__(self, parts: Sequence[Rows], shares: Sequence[float], *, seed: int) -> None:
        self.seed = seed
        self._parts = parts
        total = sum(map(len, parts))
        self.counts = [max(1, round(share / sum(shares) * total)) for share in shares]
        self._bounds = np.cumsum([0, *self.counts])

    @property
    def passes(self) -> list[float]:
        """How many times the rows of each corpus are read in an epoch of the mixture."""
        return [count / len(part) for count, part in zip(self.counts, self._parts, strict=True)]

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def segments(self, epoch: int, indices: NDArray[np.int64]) -> list[RowSegments]:
        """The rows at ``indices`` in this epoch, in which the corpora follow each other in random order."""
        places = permute(indices, len(self), seed=self.seed + 1, epoch=epoch)
        found: dict[int, RowSegments] = {}
        for number, (part, count) in enumerate(zip(self._parts, self.counts, strict=True)):
            own = np.flatnonzero((places >= self._bounds[number]) & (places < self._bounds[number + 1]))
            # The rows of a corpus are counted over all epochs of the mixture, so that none is left out.
            epochs, rows = np.divmod(epoch * count + places[own] - self._bounds[number], len(part))
            for each in np.unique(epochs).tolist():
                chosen = epochs == each
                shuffled = permute(rows[chosen], len(part), seed=self.seed + 2 + number, epoch=each)
                found |= zip(own[chosen].tolist(), part.segments(each, shuffled), strict=True)
        return [found[place] for place in range(len(indices))]
