"""torch.compile on the blocks of BERT: one graph each, and the same numbers.

In a process of its own: what checks the shapes of every call in the tests cannot be compiled.
"""

from __future__ import annotations

import subprocess
import sys

import torch

from bertkit.encoders.bert import Bert, size
from bertkit.nn.packing import PackedRows, TokenSubset

REAL = torch.arange(13) < torch.tensor([13, 7, 11])[:, None]


def test_a_block_is_one_graph() -> None:
    ended = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout == "4 blocks compared\n"


def compare(real: torch.Tensor, *, chosen: bool) -> None:
    """Both passes of a block, as it is and in one graph; a second graph is an error."""
    torch.manual_seed(1)
    block = Bert(size("1/12/3", vocab_size=99, dropout=0.0, attention_dropout=0.0)).layers[0]
    layout = PackedRows.of(real)
    choice = TokenSubset.of(real & (torch.arange(13) % 5 == 0), real) if chosen else None
    states = torch.randn(39 if layout.indices is None else len(layout.indices), 12)
    torch._dynamo.reset()
    outcomes = []
    for each in (block, torch.compile(block, backend="eager", fullgraph=True)):
        given = states.clone().requires_grad_()
        raised = each(given, layout, choice)
        torch.autograd.backward(raised.square().sum())
        outcomes.append((raised.detach(), given.grad))
    torch.testing.assert_close(outcomes[1], outcomes[0])


if __name__ == "__main__":
    for mask in (torch.ones_like(REAL), REAL):
        for some in (False, True):
            compare(mask, chosen=some)
    sys.stdout.write("4 blocks compared\n")
