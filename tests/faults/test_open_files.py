"""Processes that may open few files: a result, or one line and nothing written."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_bert import SENTENCES, make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.model import Model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    tokenizer = make_tokenizer()
    save_model(folder / "model", Model(make_encoder(tokenizer), {}), tokenizer, metadata={})
    (folder / "texts.txt").write_text("\n".join(SENTENCES))
    return folder


@pytest.mark.parametrize("most", [5, 6, 16])
def test_embed_with_few_files(folder: Path, most: int) -> None:
    output = folder / f"{most}.npy"
    ran = subprocess.run(
        [sys.executable, "-m", "bertkit", "embed", str(folder / "model"), str(folder / "texts.txt"), "-o", str(output)],
        capture_output=True,
        text=True,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most)),
    )
    if ran.returncode == 0:
        assert len(np.load(output)) == len(SENTENCES)
        return
    assert ran.returncode in (1, 3)
    (line,) = (line for line in ran.stderr.splitlines() if line.startswith("error:"))
    assert "Too many open files" in line
    assert "bug" not in line
    assert not output.exists()
