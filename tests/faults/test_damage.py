"""Every file that is read again, with flipped bits, truncated or emptied: the same answer as before, or one line.

A bit without an effect gives the same answer. Everything else is an error that names the damaged file. The log of a run
is read without its damaged lines.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workspace import build_workspace

from bertkit.checkpoint import training_state
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.shards import JOB, Corpus
from bertkit.errors import BertkitError
from bertkit.finetuning.results import read_finished_run, read_seeds
from bertkit.inference.pipeline import load
from bertkit.runs import RunFolder, read_metrics, read_run
from bertkit.storage.checksums import read_record
from bertkit.text.loading import load_tokenizer

NOT_READ = (".svg", ".md", ".html", ".lock")
LOG = "metrics.jsonl"
TEXT = "silver river"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("finetuning.run.plot_epochs", "finetuning.run.plot_confusion", "pretraining.run.plot_training"):
            patch.setattr(f"bertkit.{name}", lambda *arguments: None)
        build_workspace(folder)
    return folder


def read_tokenizer(folder: Path) -> object:
    tokenizer = load_tokenizer(folder)
    return tokenizer.fingerprint, tokenizer.encode(TEXT)


def read_data(folder: Path) -> object:
    splits = [Corpus.open(folder, split) for split in ("train", "heldout")]
    tokens = [shard.tokens.tobytes() for corpus in splits for shard in corpus.shards]
    return tokens, splits[0].manifest, splits[0].load_tokenizer().fingerprint, read_record(folder / JOB)


def read_pretraining(folder: Path) -> object:
    model = ModelFolder.open(folder)
    weights = [each.sum().item() for each in model.load_encoder().parameters()]
    checkpoints = [training_state.load(path) for path in training_state.checkpoints(folder / "checkpoints")]
    sums = [
        {name: sum(float(each.double().sum()) for each in group.values()) for name, group in groups.items()}
        for groups, _ in checkpoints
    ]
    return weights, sums, [state for _, state in checkpoints], model.tokenizer.fingerprint, read_run(folder)


def read_finetuning(folder: Path) -> object:
    seeds = read_seeds(RunFolder(folder))
    return load(folder).classify(TEXT), read_finished_run(folder / "model"), seeds, read_run(folder)


READERS = {"tok": read_tokenizer, "data": read_data, "run": read_pretraining, "tuned": read_finetuning}


def damage(content: bytes, flips: int) -> Iterator[bytes]:
    """The content with one flipped bit, at the ends and at ``flips`` random places, and shortened."""
    generator = random.Random(13)
    bits = [0, 8 * len(content) - 1, *(generator.randrange(8 * len(content)) for _ in range(flips))]
    for bit in bits:
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)
    yield content[:-1]
    yield content[: len(content) // 2]
    yield b""


@pytest.mark.parametrize("flips", [1, pytest.param(200, marks=pytest.mark.faults)])
@pytest.mark.parametrize("name", READERS)
def test_damage_changes_no_answer_silently(workspace: Path, tmp_path: Path, name: str, flips: int) -> None:
    folder, read = tmp_path / name, READERS[name]
    shutil.copytree(workspace / name, folder)
    expected = read(folder)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in NOT_READ]
    assert len(files) >= 4
    refused = 0
    for path in files:
        content = path.read_bytes()
        for damaged in damage(content, flips) if path.name != LOG else ():
            path.write_bytes(damaged)
            try:
                assert read(folder) == expected, f"damage to {path} is silent"
            except BertkitError as error:
                assert path.name in str(error)
                assert "\n" not in str(error)
                refused += 1
        path.write_bytes(content)
    assert refused > 4 * (len(files) - 1)


@pytest.mark.parametrize("flips", [5, pytest.param(500, marks=pytest.mark.faults)])
@pytest.mark.parametrize("name", ["run", "tuned"])
def test_damage_to_a_log_costs_the_lines_that_it_hits(workspace: Path, tmp_path: Path, name: str, flips: int) -> None:
    log = tmp_path / LOG
    shutil.copy(workspace / name / LOG, log)
    expected, content = read_metrics(log), log.read_bytes()
    for damaged in damage(content, flips):
        log.write_bytes(damaged)
        found = read_metrics(log)
        assert [record for record in expected if record in found] == found
        assert len(found) >= damaged.count(b"\n") - 2
