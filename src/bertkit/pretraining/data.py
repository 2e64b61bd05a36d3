"""The prepared corpora of a pre-training run, opened and verified once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertkit.contracts import SubwordTokenizer
from bertkit.data.mixture import Mixture, check_same_tokenizer
from bertkit.data.shards import Corpus, read_manifest
from bertkit.errors import usage_error
from bertkit.pretraining.record import PretrainRun

LEAST_DOCUMENTS = 2
"""Held-out text of fewer documents is not evaluated."""


@dataclass(frozen=True, kw_only=True)
class PretrainingData:
    """The training and held-out splits of the DATA folders, and the tokenizer that made them.

    ``second_heldout`` is the held-out split of another folder, which is evaluated too.
    """

    train: Mixture
    heldout: Mixture
    tokenizer: SubwordTokenizer
    second_heldout: Mixture | None = None

    @classmethod
    def open(cls, run: PretrainRun, *, verify: bool = True) -> PretrainingData:
        """Open the folders of ``run``; ``verify`` compares every byte of their shards with the checksums.

        Raises a usage error if they have different tokenizers, or the one to evaluate no held-out documents.
        """
        train = Mixture.open(run.corpora, verify=verify)
        first, second = train.corpora[0], run.also_evaluate
        return cls(
            train=train,
            heldout=Mixture.open(run.corpora, "heldout", verify=verify),
            tokenizer=first.load_tokenizer(),
            second_heldout=None if second is None else _open_second(second, first, verify=verify),
        )


def _open_second(folder: Path, train: Corpus, *, verify: bool) -> Mixture:
    corpus = Corpus.open(folder, "heldout", verify=verify)
    check_same_tokenizer(corpus, train)
    if corpus.num_documents < LEAST_DOCUMENTS:
        raise usage_error(f"{folder} has no held-out text to evaluate on: prepare it with a larger --heldout.")
    return Mixture((corpus,))


def name_corpus(folder: Path) -> str:
    """The name of a DATA folder, without the folders that it is in."""
    return folder.resolve().name


def data_fingerprints(run: PretrainRun) -> list[dict[str, str | int]]:
    """Size and SHA-256 of the text files that the shards were made from.

    In a mixture the name of the folder is part of the name of the file.
    """
    found: list[dict[str, str | int]] = []
    for folder, _ in run.corpora:
        prefix = f"{name_corpus(folder)}/" if run.mix else ""
        for each in read_manifest(folder).sources:
            found.append({"file": prefix + Path(each.file).name, "bytes": each.bytes, "sha256": each.sha256})
    return found
