"""The examples of CONTRIBUTING.md are files that work."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from bertkit.batch import Batch
from bertkit.contracts import Encoder, Objective

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
TSV = "tweet\tironic\nA lovely day, rain again\t1\nThe train leaves at seven\t0\n"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that the page shows as ``src/bertkit/<name>.py``."""
    code = re.search(rf"```python\n# src/bertkit/{name}\.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code, f"CONTRIBUTING.md shows no {name}.py"
    module = ModuleType(name.replace("/", "."))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code[1], name, "exec"), module.__dict__)
    return module


@pytest.fixture
def batch() -> Batch:
    mask = torch.arange(7) < torch.tensor([[7], [3], [5]])
    ids = torch.randint(5, 99, (3, 7)) * mask
    return Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=mask, labels={})


def test_the_task_reads_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text(TSV)
    task = load("tasks/irony", monkeypatch).irony.at(tmp_path)
    assert [example.label for example in task.examples("train")] == ["ironic", "sincere"]


def test_the_objective_learns(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load("encoders/bag", monkeypatch).tiny()
    objective, labelled = load("objectives/replaced", monkeypatch).tiny(encoder.hidden_size, batch)
    assert isinstance(encoder, Encoder)
    assert isinstance(objective, Objective)
    states = encoder(labelled, objective.reads(labelled))
    assert states.hidden_states.shape == (3, 7, 12)
    outputs = objective(states, labelled)
    term = objective.loss(outputs, labelled)["replaced"]
    term.sum.backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is not None for weight in (*encoder.parameters(), *objective.parameters()))
    assert objective.counts(labelled) == {"replaced": term.count} == {"replaced": 15}
    assert objective.metrics(outputs, labelled)["replaced_accuracy"].count == 15
