"""What a run shows of its examples before training starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bertkit.batch import IGNORE
from bertkit.pretraining.task import CorpusShare, PretrainingSource, Source


@dataclass(frozen=True, kw_only=True)
class DataReport:
    """Properties of the examples, measured on a sample before training starts; shares are from 0 to 1."""

    examples_per_epoch: int
    sampled: int
    random_next_share: float | None
    row_fill: float
    masked_share: float | None
    duplicate_rows: float
    unknown_tokens: float
    mixture: tuple[CorpusShare, ...] = ()
    """The corpora that are mixed; empty for a single one."""

    def lines(self) -> list[str]:
        """The report as text."""
        share = self.random_next_share
        random_next = "none" if share is None else f"{share:.1%} random"
        if share == 1:
            random_next += ": no pair goes on with its own document, which needs two sentences"
        masked = "none" if self.masked_share is None else f"{self.masked_share:.1%} of real tokens"
        return [
            f"examples per epoch  {self.examples_per_epoch:,}",
            f"next sentences      {random_next}",
            f"row fill            {self.row_fill:.1%}",
            f"masked              {masked}",
            f"duplicate rows      {self.duplicate_rows:.2%}",
            f"unknown tokens      {self.unknown_tokens:.2%}",
            *(
                f"mixture             {each.share:.1%} {each.folder}, read {each.passes:.2f} times per epoch"
                for each in self.mixture
            ),
        ]


def report_data(source: Source) -> DataReport:
    """Measure up to 1,024 examples, evenly spread over the first epoch."""
    count = min(1024, len(source))
    batch = source.batch(0, np.linspace(0, len(source) - 1, count).astype(np.int64))
    real = batch.attention_mask
    tokens = int(real.sum())
    ids = batch.input_ids if batch.input_ids.ndim == 2 else batch.input_ids[..., 0]  # of a word without its characters
    mlm_labels = batch.labels.get("mlm", torch.full_like(ids, IGNORE))
    masked = mlm_labels != IGNORE
    original = mlm_labels.where(masked, ids)
    rows = {row.numpy().tobytes() for row in original}
    nsp = batch.labels.get("nsp")
    return DataReport(
        examples_per_epoch=len(source),
        sampled=count,
        random_next_share=None if nsp is None else float(nsp.float().mean()),
        row_fill=tokens / (count * source.seq_length),
        masked_share=float(masked.sum()) / tokens if "mlm" in batch.labels else None,
        duplicate_rows=1 - len(rows) / len(batch),
        unknown_tokens=float(((original == source.tokenizer.unk_id) & real).sum()) / tokens,
        mixture=source.mixture if isinstance(source, PretrainingSource) else (),
    )
