"""examples/albert.py is an encoder outside bertkit: shared layers, a narrow table of tokens, folders of Hugging Face.

A process of its own runs each job with it, as a user's program would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bertkit

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(bertkit.__file__).parent

AGREE = """
import torch, transformers

def difference(folder, kind):
    from bertkit.batch import Batch
    loaded = bertkit.load(folder)
    model = loaded.masked_lm_model if kind.endswith("MaskedLM") else loaded.task_model
    theirs = getattr(transformers, kind).from_pretrained(folder).eval()
    ids = torch.randint(5, 60, (3, 11), generator=torch.Generator().manual_seed(7))
    mask = torch.arange(11) < torch.tensor([11, 4, 7])[:, None]
    batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=mask, labels={})
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=mask.long()).logits
        (logits,) = model.eval()(batch).values()
    logits = logits["logits"]
    expected = expected.flatten(0, 1) if logits.dim() < expected.dim() else expected
    real = mask.flatten() if len(logits) == mask.numel() else slice(None)
    return float((logits[real] - expected[real]).abs().max())
"""
"""The largest difference of the outputs from those of transformers, for a folder with one head."""

JOBS = """
import json
from pathlib import Path
import examples.albert
import bertkit

text = "river stone early garden music letter winter seven market silver bridge".split()
Path("a.txt").write_text("\\n".join(" ".join(text[n % 11:] + text[:n % 7]) + "." for n in range(150)))
quiet = {"progress": "quiet"}
bertkit.tokenizer_train(["a.txt"], output="tokenizer", vocab_size=99, **quiet)
bertkit.prepare(["a.txt"], tokenizer="tokenizer", output="data", heldout=0.2, **quiet)
settings = ["encoder.embedding_size=8", "long_seq_length=33"]
bertkit.pretrain("data", architecture="examples.albert", size="3/16/2", profile="fast", steps=3, output="run",
                 batch_size=7, seq_length=17, set=settings, **quiet)
config = json.loads(Path("run/model/config.json").read_text())
assert (config["model_type"], config["bertkit_encoder"]) == ("albert", "examples.albert")
assert config["architectures"] == ["AlbertForMaskedLM"]
assert difference("run/model", "AlbertForMaskedLM") <= 1e-4

Path("t.csv").write_text("text,label\\n" + "\\n".join(f"{word} stone,{n % 2}" for n, word in enumerate(text * 3)))
bertkit.finetune("t.csv", model="run", output="classes", epochs=1, batch_size=7, set=["task.pooling=cls"], **quiet)
assert difference("classes/model", "AlbertForSequenceClassification") <= 1e-4
for precision in ("float32", "bfloat16", "int8"):
    assert len(bertkit.load("classes", precision=precision).classify(["river stone"])) == 1

vocab_size = len(Path("tokenizer/vocab.txt").read_text().split())
sizes = {"embedding_size": 8, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2}
theirs = transformers.AlbertForMaskedLM(transformers.AlbertConfig(
    vocab_size=vocab_size, intermediate_size=37, max_position_embeddings=41, **sizes))
theirs.save_pretrained("published")
Path("published/vocab.txt").write_bytes(Path("tokenizer/vocab.txt").read_bytes())
assert difference("published", "AlbertForMaskedLM") <= 1e-4
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("albert")
    done = run(folder, ["-c", AGREE + JOBS])
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def run(folder: Path, arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)]), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_command_opens_what_the_user_trusts(folder: Path) -> None:
    refused = run(folder, ["-m", "bertkit", "fill", "run", "river [MASK]"])
    assert "a file names the module examples.albert, which is code outside bertkit" in refused.stderr
    opened = run(folder, ["-m", "bertkit", "fill", "run", "river [MASK]"], BERTKIT_TRUST="examples")
    assert opened.returncode == 0, opened.stderr


def test_a_folder_of_hugging_face_is_read_by_a_trusted_module(folder: Path) -> None:
    refused = run(folder, ["-m", "bertkit", "fill", "published", "river [MASK]"])
    assert 'model_type is "albert"; bertkit reads "bert"' in refused.stderr
    opened = run(folder, ["-m", "bertkit", "fill", "published", "river [MASK]"], BERTKIT_TRUST="examples.albert")
    assert opened.returncode == 0, opened.stderr
