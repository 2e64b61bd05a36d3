"""Modules that are imported when a job needs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.model import Model
from bertkit.optional import load, require
from bertkit.task_types import TextClassificationTask


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


def test_no_library_reports_to_its_maker(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    code = "from bertkit.optional import load; load('onnxruntime')"
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    for name in ("HOME", "XDG_CACHE_HOME"):
        environment[name] = str(tmp_path)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert not list(tmp_path.rglob("*onnxruntime*"))


def test_pretraining_imports_sharding_without_its_libraries() -> None:
    """They take 0.8 s to import, and only ``--shard`` needs them."""
    code = "import sys, bertkit.pretraining.run; assert 'torch.distributed.checkpoint' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_prediction_imports_neither_scikit_learn_nor_matplotlib_nor_the_compiler_of_torch(tmp_path: Path) -> None:
    """scikit-learn and scipy take 1.2 s of CPU time to import, matplotlib 0.4 s, ``torch._dynamo`` 2 s."""
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer)
    task = TextClassificationTask(name="t", metric="accuracy", labels=("dry", "wet"), max_length=41)
    model = Model(encoder, task.objectives(encoder))
    save_model(tmp_path / "model", model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    script = tmp_path / "answer.py"
    script.write_text(
        "import gc, sys, bertkit\n"
        "print(bertkit.load(sys.argv[1]).classify('the river').label)\n"
        "assert gc.isenabled()\n"
        "heavy = ('bertkit.finetuning', 'bertkit.server', 'matplotlib', 'scipy', 'sklearn', 'torch._dynamo', 'sympy')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, script, tmp_path / "model"], check=True, capture_output=True, text=True)
    label, imported = run.stdout.splitlines()
    assert label in task.labels
    assert imported == "[]"


def test_a_library_that_cannot_be_imported_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_library.py").write_text("raise ImportError('libarrow.so: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BertkitError) as caught:
        require("broken_library", extra="parquet", purpose="data.parquet")
    assert str(caught.value) == (
        "data.parquet needs broken_library, which cannot be imported: libarrow.so: cannot open shared object file."
    )
