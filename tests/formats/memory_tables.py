"""Tables in memory, of pandas and of datasets, for tests. Each needs its library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

TEXTS = ['say "hi", then\ngo', "naïve 中文 \U0001f44d", "a;b\tc"]
CLASSES = ["bad", "good"]


def frame(**columns: Sequence[Any]) -> Any:
    """A DataFrame whose index does not count from 0, as one that was filtered has it."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame(columns, index=range(7, 7 + len(next(iter(columns.values())))))


def dataset(texts: Sequence[str], labels: Sequence[int]) -> Any:
    """A Dataset with the columns text and label, a class that is stored as a number."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=CLASSES)})
    return datasets.Dataset.from_dict({"text": list(texts), "label": list(labels)}, features=features)


def dataset_dict(**splits: Any) -> Any:
    """A DatasetDict of these Datasets."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    return datasets.DatasetDict(splits)
