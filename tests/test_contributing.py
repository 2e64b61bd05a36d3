"""CONTRIBUTING.md says that a task, an objective or an encoder is one file. Its three examples prove it.

They are copied into a copy of the packages, and into a package outside bertkit. Processes of their own run the tests of
every plug-in on them, and train with each example and load the result.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bertkit

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(bertkit.__file__).parent
EXAMPLES = ("tasks/irony", "objectives/replaced", "encoders/bag")
SUITES = (
    "tests/tasks/test_every_task.py",
    "tests/objectives/test_every_objective.py",
    "tests/encoders/test_every_encoder.py",
)
NAMES = {"task": "irony", "objective": "replaced", "encoder": "bag"}
OUTSIDE_NAMES = {"task": "my_lab.irony:irony", "objective": "my_lab.replaced", "encoder": "my_lab.bag"}

DATA = """
import json, random
from pathlib import Path

import bertkit
from bertkit.finetuning import run
from bertkit.pretraining import run as pretraining

# They take longer than the training.
run.plot_epochs = run.plot_confusion = pretraining.plot_training = lambda *arguments, **options: None
chance = random.Random(7)
WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]
texts = [" ".join(chance.choices(WORDS, k=13)) + "." for _ in range(99)]
Path("texts.jsonl").write_text("\\n".join(json.dumps({"text": f"{text} {text}"}) for text in texts))
Path("irony").mkdir()
for split in ("train", "dev"):
    rows = [f"{text}\\t{number % 2}" for number, text in enumerate(texts[:37])]
    Path(f"irony/{split}.tsv").write_text("\\n".join(["tweet\\tironic", *rows]) + "\\n")
bertkit.tokenizer_train(["texts.jsonl"], output="tokenizer", vocab_size=99, progress="quiet")
manifest = bertkit.prepare(["texts.jsonl"], tokenizer="tokenizer", output="corpus", heldout=0.2, progress="quiet")
quiet = {"progress": "quiet"}
steps = {"steps": 2, "batch_size": 7, "seq_length": 17, **quiet}
"""

ENCODER = """
options = {"architecture": NAMES["encoder"], "size": "tiny", **steps}
result = bertkit.pretrain("corpus", output="encoder", set=["save_every=1"], **options)
assert set(result.heldout) == {"mlm", "mlm_accuracy", "mlm_perplexity"}
assert "# Bag of words 64" in Path("encoder/model/README.md").read_text()
assert bertkit.pretrain(resume="encoder", **quiet).steps == 2
assert len(bertkit.load("encoder").fill("river [MASK] stone", top_k=3)[0]) == 3
"""

OBJECTIVE = """
options = {"size": "1/12/2", "set": [f'task.objectives=["{NAMES["objective"]}", "nsp"]', "save_every=1"], **steps}
result = bertkit.pretrain("corpus", output="objective", **options)
assert set(result.heldout) == {"replaced", "replaced_accuracy", "nsp", "nsp_accuracy", "nsp_base_rate"}
assert bertkit.pretrain(resume="objective", **quiet).steps == 2
"""

PLAN = """
objectives = f'task.objectives=["{NAMES["objective"]}", "nsp"]'
options = {"architecture": NAMES["encoder"], "size": "tiny", "set": [objectives], **steps}
parameters = bertkit.pretrain("corpus", plan=True, **options).parameters
assert parameters["embeddings"] == 64 * manifest.vocab_size
assert parameters["heads"] == 65 + 130
"""

TASK = """
options = {"data": "irony", "model": "objective", "epochs": 1, "batch_size": 7, "no_baseline": True, **quiet}
bertkit.finetune(NAMES["task"], output="task", **options)
scores = bertkit.evaluate("task", data="irony", **quiet)
bertkit.finetune(NAMES["task"], output="task_with_encoder", **{**options, "model": "encoder"})
assert {each.label for each in bertkit.load("task_with_encoder").classify(["river stone"])} <= {"sincere", "ironic"}
"""


def read_example(name: str) -> str:
    """The module that the page shows as ``src/bertkit/<name>.py``."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = re.search(rf"```python\n# src/bertkit/{name}\.py\n(.*?)```", page, re.DOTALL)
    assert code, f"CONTRIBUTING.md shows no {name}.py"
    return code[1]


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source and its tests with the examples in the plug-in packages."""
    folder = tmp_path_factory.mktemp("inside")
    without_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "src" / "bertkit", ignore=without_caches)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=without_caches)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name in EXAMPLES:
        (folder / "src" / "bertkit" / f"{name}.py").write_text(read_example(name), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package ``my_lab``, which has the examples."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "my_lab").mkdir()
    (folder / "my_lab" / "__init__.py").touch()
    for name in EXAMPLES:
        module = folder / "my_lab" / Path(name).with_suffix(".py").name
        module.write_text(read_example(name), encoding="utf-8")
    return folder


def test_the_objective_replaces_no_special_token(outside: Path, tmp_path: Path) -> None:
    code = """
import numpy as np, torch
from bertkit.batch import IGNORE, Batch
from bertkit.rng import CounterRng
from bertkit.text import wordpiece
from my_lab.replaced import ReplacedTokenDetection
tokenizer = wordpiece.train(["river stone early garden"] * 9, vocab_size=37)
ids = torch.tensor([tokenizer.cls_id, *range(5, 25), tokenizer.sep_id]).repeat(41, 1)
real = torch.ones_like(ids, dtype=torch.bool)
batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=real, labels={})
found = ReplacedTokenDetection.add_labels(batch, CounterRng(1, 0, np.arange(41)), tokenizer, None)
assert torch.equal(found.input_ids[:, [0, -1]], ids[:, [0, -1]])
assert (found.labels["replaced"][:, [0, -1]] == IGNORE).all()
assert 0.05 < (found.labels["replaced"][:, 1:-1] == 1).float().mean() < 0.25
"""
    run(["-c", code], tmp_path, PACKAGE.parent, outside)


def run(arguments: list[str], folder: Path, *paths: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    environment.pop("BERTKIT_DATA", None)
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-5000:]
    return ended.stdout


def test_the_tests_of_all_plug_ins_find_the_examples_and_pass(inside: Path) -> None:
    """Those of the other plug-ins run in the suite itself."""
    examples = " or ".join(NAMES.values())
    output = run(["-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", examples, *SUITES], inside, inside / "src")
    for suite, name in zip(SUITES, NAMES.values(), strict=True):
        assert re.search(rf"^{suite}::\w+\[.*{name}.*\] PASSED", output, re.MULTILINE)
    assert "failed" not in output


def test_examples_in_the_packages_are_used_by_their_names(inside: Path, tmp_path: Path) -> None:
    run(["-c", f"NAMES = {NAMES}\n{DATA}{PLAN}{ENCODER}{OBJECTIVE}{TASK}"], tmp_path, inside / "src")


def test_examples_outside_bertkit_are_used_by_their_dotted_names(outside: Path, tmp_path: Path) -> None:
    code = f"NAMES = {OUTSIDE_NAMES}\n{DATA}{PLAN}{ENCODER}{OBJECTIVE}{TASK}"
    run(["-c", code], tmp_path, PACKAGE.parent, outside)
