"""The golden curve: 50 steps of a small BERT with dropout equal the recorded ones bit for bit.

The bits of float32 on a CPU depend on torch's version, the instructions that its kernels and MKL choose for the
processor, and the number of threads, which is 1 here. So each record has a digest of torch's own results for the
products and functions of a step. If no record has this machine's, the test is skipped. The steps are those of torch:
the bits of the compiled passes depend on the compiler too, and tests/kernels compares them with torch. After a change
that is meant to alter the numbers, and for a new torch or another processor, on each machine:

    BERTKIT_RENEW_GOLDEN=1 pytest tests/training/test_golden.py
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from bertkit.data.mixture import Mixture
from bertkit.data.prepare import prepare
from bertkit.data.shards import Corpus
from bertkit.encoders.bert import Bert, size
from bertkit.kernels import fused
from bertkit.model import Model
from bertkit.pretraining.task import PretrainingTask
from bertkit.text import wordpiece
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer

GOLDEN = Path(__file__).with_name("golden.json")
SENTENCES = [
    "Seven wide rivers ran slowly.",
    "The old mill stood still.",
    "A miller counts coins.",
    "It was dawn.",
    "Nobody had crossed the bridge since winter.",
]


def machine() -> dict[str, str]:
    """What the bits depend on. The digest alone would be enough; the names explain a skip to the reader."""
    return {
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "kernels": digest_of_kernels(),
    }


def digest_of_kernels() -> str:
    """A hash of the results of torch's products, functions, sums and AdamW, for every number of tokens of a step."""
    digest = hashlib.sha256()
    generator = torch.Generator().manual_seed(7)
    tokens, weight = torch.randn(5 * 37, 28, generator=generator), torch.randn(112, 28, generator=generator)
    for rows in range(1, len(tokens) + 1):
        for width in (28, 56, 84, 99, 112):
            product = F.linear(tokens[:rows], weight[:width], weight[:width, 0])
            for each in (product, product.T @ tokens[:rows], product @ weight[:width]):
                digest.update(each.numpy().tobytes())
        heads = tokens[:rows].view(rows, 2, 14).transpose(0, 1)
        digest.update(torch.bmm(heads, heads.transpose(1, 2)).numpy().tobytes())
    for function in (torch.erf, torch.exp, torch.tanh, F.gelu, torch.sum, torch.linalg.vector_norm):
        digest.update(function(tokens).numpy().tobytes())
    for width in (28, 13, 37):
        for normalize in (F.softmax, F.log_softmax):
            digest.update(normalize(tokens[:, :width], dim=-1).numpy().tobytes())
    parameter = torch.nn.Parameter(weight)
    optimizer = torch.optim.AdamW([parameter], fused=True)
    torch.autograd.backward(F.layer_norm(tokens @ parameter.T, (112,)).pow(3).sum())
    optimizer.step()
    digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def curve(folder: Path) -> list[dict[str, str]]:
    """Losses and gradient norm of every step, as hexadecimal floats."""
    texts = [" ".join(SENTENCES[number % 4 :] * (1 + number % 5)) for number in range(67)]
    file = folder / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = wordpiece.train(texts, vocab_size=99)
    prepare([file], tokenizer=tokenizer, output=folder / "data", heldout=0.0)
    task = PretrainingTask()
    source = task.source(Mixture((Corpus.open(folder / "data"),)), tokenizer, seq_length=37, seed=5)
    torch.manual_seed(5)
    encoder = Bert(size("2/28/2", vocab_size=tokenizer.vocab_size, max_positions=37))
    model = Model(encoder, task.build_objectives(encoder))
    state = TrainingState(model, build_optimizer(model, OptimizerConfig(lr=1e-3)))
    steps = fit(state, source, Plan(total_steps=50, batch_size=5, micro_batch_size=3, seed=5))
    return [{name: value.hex() for name, value in {**step.losses, "norm": step.grad_norm}.items()} for step in steps]


def test_fifty_steps_equal_the_golden_curve_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_library", lambda: None)
    records = json.loads(GOLDEN.read_text())
    own = [each["steps"] for each in records if each["machine"] == machine()]
    if "BERTKIT_RENEW_GOLDEN" in os.environ:
        others = [each for each in records if each["machine"] != machine()]
        records = [*others, {"machine": machine(), "steps": curve(tmp_path)}]
        GOLDEN.write_text(json.dumps(records, indent=1) + "\n")
        pytest.skip(f"renewed {GOLDEN}; run again without BERTKIT_RENEW_GOLDEN")
    if not own:
        pytest.skip(f"recorded on {[each['machine'] for each in records]}; this is {machine()}")
    steps = curve(tmp_path)
    assert len(steps) == 50
    assert steps == own[0]
