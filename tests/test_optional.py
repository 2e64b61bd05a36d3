"""Modules that are imported when a job needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.optional import load, require


def test_an_installed_module_is_returned() -> None:
    assert load("json.decoder").JSONDecodeError is require("json", extra="json", purpose="reading").JSONDecodeError


@pytest.mark.parametrize(
    ("module", "library", "message"),
    [
        ("pyarrow.parquet", "", "data.parquet needs pyarrow: pip install 'bertkit[parquet]'."),
        ("torch.utils.tensorboard", "TensorBoard", "data.parquet needs TensorBoard: pip install 'bertkit[parquet]'."),
    ],
)
def test_a_missing_library_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, library: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BertkitError) as caught:
        require(module, extra="parquet", purpose="data.parquet", library=library)
    assert str(caught.value) == message
    assert caught.value.exit_code == WRONG_USAGE


def test_pretraining_imports_sharding_without_its_libraries() -> None:
    """They take 0.8 s to import, and only ``--shard`` needs them."""
    code = "import sys, bertkit.pretraining.run; assert 'torch.distributed.checkpoint' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
