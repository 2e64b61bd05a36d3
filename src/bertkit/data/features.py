"""From the tokens of one or two texts to features, and from features to a batch.

Letters: R rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from bertkit.batch import IGNORE, Batch, Feature, Label
from bertkit.contracts import Tokenizer, Tokens
from bertkit.errors import usage_error

_NO_TOKENS = Tokens([], [])


def assemble(
    tokenizer: Tokenizer,
    first: str | Tokens,
    second: str | Tokens | None = None,
    *,
    max_length: int,
    labels: Mapping[str, Label] | None = None,
) -> Feature:
    """``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``, at most ``max_length`` tokens.

    The tokenizer defines the special tokens at the ends of a row and between A and B; those between have segment 0.
    A pair that is too long loses tokens one by one from the end of whichever text is longer at that moment
    (google-research/bert ``run_classifier.py``, ``_truncate_seq_pair``). A row that is too short for its special tokens
    is a usage error.
    """
    a = tokenizer.encode(first) if isinstance(first, str) else first
    b = tokenizer.encode(second) if isinstance(second, str) else (second or _NO_TOKENS)
    after_first = [tokenizer.end_id] if second is None else tokenizer.between_ids
    room = _room(tokenizer, max_length, pair=second is not None)
    keep_a, keep_b = truncated_lengths(len(a.ids), len(b.ids), room)
    input_ids = [tokenizer.start_id, *a.ids[:keep_a], *after_first]
    offsets = [(0, 0), *a.offsets[:keep_a], *[(0, 0)] * len(after_first)]
    segment_ids = [0] * len(input_ids)
    if second is not None:
        input_ids += [*b.ids[:keep_b], tokenizer.end_id]
        offsets += [*b.offsets[:keep_b], (0, 0)]
        segment_ids += [1] * (keep_b + 1)
    return Feature(
        input_ids=np.array(input_ids, dtype=np.int32),
        segment_ids=np.array(segment_ids, dtype=np.int8),
        labels=dict(labels or {}),
        offsets=np.array(offsets, dtype=np.int32),
        num_truncated=len(a.ids) - keep_a + len(b.ids) - keep_b,
    )


def assemble_windows(
    tokenizer: Tokenizer,
    first: str,
    second: str | None = None,
    *,
    max_length: int,
    stride: int,
    labels: Mapping[str, Label] | None = None,
) -> list[Feature]:
    """The texts as overlapping windows: one begins every ``stride`` tokens of the longer text up to its end.

    If a window has room for fewer than ``stride`` of them, the next one begins where it ends. Every window contains the
    other text of a pair, truncated to half of a window. Windows over a paragraph are placed as in google-research/bert
    ``run_squad.py``. Windows that are too short for a token of the text are a usage error.
    """
    a = tokenizer.encode(first)
    b = _NO_TOKENS if second is None else tokenizer.encode(second)
    max_tokens = _room(tokenizer, max_length, pair=second is not None, least=1)
    if len(a.ids) + len(b.ids) <= max_tokens:
        return [assemble(tokenizer, a, None if second is None else b, max_length=max_length, labels=labels)]
    long, short = (a, b) if len(a.ids) >= len(b.ids) else (b, a)
    # Half of the window at most, so that windows over the longer text always make progress.
    kept = _slice(short, 0, max_tokens // 2)
    width = max_tokens - len(kept.ids)
    # A tokenizer with several tokens between the texts leaves less room than ``TextTask.widest_stride`` expects.
    step = min(stride, width)
    features = []
    for start in range(0, len(long.ids) - width + step, step):
        window = _slice(long, start, width)
        pair = (window, kept) if long is a else (kept, window)
        texts = pair if second is not None else (window, None)
        features.append(assemble(tokenizer, *texts, max_length=max_length, labels=labels))
    features[0] = replace(features[0], num_truncated=len(short.ids) - len(kept.ids))
    return features


def _room(tokenizer: Tokenizer, max_length: int, *, pair: bool, least: int = 0) -> int:
    """The tokens of text in a row of ``max_length``; fewer than ``least`` are a usage error."""
    specials = 2 + (len(tokenizer.between_ids) if pair else 0)
    if max_length < specials + least:
        raise usage_error(f"max_length is {max_length}, and a row has {specials} special tokens: choose a larger one.")
    return max_length - specials


def _slice(tokens: Tokens, start: int, size: int) -> Tokens:
    return Tokens(tokens.ids[start : start + size], tokens.offsets[start : start + size])


def truncated_lengths(first: int, second: int, max_tokens: int) -> tuple[int, int]:
    """Lengths of two texts after the longer one has lost tokens, one by one, until both fit ``max_tokens``."""
    excess = max(0, first + second - max_tokens)
    # First the longer text is shortened to the length of the other; then both lose a token in turn, the second first,
    # because the loop of the reference shortens the second where both are equally long.
    to_equal = min(excess, abs(first - second))
    rest = excess - to_equal
    if first > second:
        return first - to_equal - rest // 2, second - (rest + 1) // 2
    return first - rest // 2, second - to_equal - (rest + 1) // 2


def stack(rows: Sequence[Feature], *, labels: Mapping[str, Label]) -> Feature:
    """Several rows of one example, such as its choices, as one feature (R, T), each padded to the longest."""
    lengths = np.array([len(row) for row in rows])
    width = int(lengths.max())
    return Feature(
        input_ids=_padded([row.input_ids for row in rows], width, 0, rows[0].input_ids.dtype),
        segment_ids=_padded([row.segment_ids for row in rows], width, 0, rows[0].segment_ids.dtype),
        labels=dict(labels),
        num_truncated=sum(row.num_truncated for row in rows),
        lengths=lengths,
    )


def collate(features: Sequence[Feature], *, pad_id: int) -> Batch:
    """A batch (R, T) of features, padded at the end to the longest; a feature with several rows gives several."""
    rows = [row for feature in features for row in _rows(feature)]
    lengths = np.array([len(row) for row in rows])
    width = int(lengths.max())
    # ``rows_per_feature`` counts the rows of every feature, so either all features have several or none has.
    counts = [len(feature.lengths) for feature in features if feature.lengths is not None]
    assert len(counts) in (0, len(features)), "a batch has features with several rows and features with one"
    return Batch(
        input_ids=torch.from_numpy(_padded([row.input_ids for row in rows], width, pad_id)),
        segment_ids=torch.from_numpy(_padded([row.segment_ids for row in rows], width, 0)),
        attention_mask=torch.from_numpy(np.arange(width) < lengths[:, None]),
        labels={name: _labels([feature.labels[name] for feature in features]) for name in features[0].labels},
        rows_per_feature=torch.tensor(counts) if counts else None,
    )


def _rows(feature: Feature) -> list[Feature]:
    """The rows of a feature: one per choice, without its padding, or the feature itself if it has no choices."""
    if feature.lengths is None:
        return [feature]
    return [
        Feature(input_ids=ids[:length], segment_ids=segments[:length])
        for ids, segments, length in zip(feature.input_ids, feature.segment_ids, feature.lengths, strict=True)
    ]


def _padded(rows: Sequence[NDArray[Any]], width: int, fill: int, dtype: DTypeLike = np.int64) -> NDArray[Any]:
    padded = np.full((len(rows), width, *rows[0].shape[1:]), fill, dtype=dtype)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded


def _labels(labels: Sequence[Label]) -> Tensor:
    if isinstance(labels[0], np.ndarray):
        arrays = [np.asarray(label) for label in labels]
        dtype = arrays[0].dtype if np.issubdtype(arrays[0].dtype, np.floating) else np.int64
        return torch.from_numpy(_padded(arrays, max(map(len, arrays)), IGNORE, dtype))
    return torch.tensor(labels, dtype=torch.float32 if isinstance(labels[0], float) else torch.long)
