"""torch.compile makes one graph of a BERT block, with the same outputs and gradients.

It runs in its own process, because the run-time shape checks of the tests cannot be compiled.
"""

from __future__ import annotations

import subprocess
import sys

import torch

from bertkit.encoders.bert import Bert, size
from bertkit.nn.packing import PackedRows, TokenSubset

REAL = torch.arange(13) < torch.tensor([13, 7, 11])[:, None]


def test_a_block_is_one_graph() -> None:
    finished = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert finished.stdout == "4 blocks compared\n"


def compare(real: torch.Tensor, *, subset: bool) -> None:
    """Compare forward and backward of a block with those of its compiled graph; a second graph is an error."""
    torch.manual_seed(1)
    block = Bert(size("1/12/3", vocab_size=99, dropout=0.0, attention_dropout=0.0)).layers[0]
    layout = PackedRows.of(real)
    tokens = TokenSubset.of(real & (torch.arange(13) % 5 == 0), real) if subset else None
    states = torch.randn(39 if layout.indices is None else len(layout.indices), 12)
    torch._dynamo.reset()
    outcomes = []
    for each in (block, torch.compile(block, backend="eager", fullgraph=True)):
        inputs = states.clone().requires_grad_()
        output = each(inputs, layout, tokens)
        torch.autograd.backward(output.square().sum())
        outcomes.append((output.detach(), inputs.grad))
    torch.testing.assert_close(outcomes[1], outcomes[0])


if __name__ == "__main__":
    for mask in (torch.ones_like(REAL), REAL):
        for subset in (False, True):
            compare(mask, subset=subset)
    sys.stdout.write("4 blocks compared\n")
