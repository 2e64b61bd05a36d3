"""import_ and export from Python."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from safetensors.torch import load_file

import bertkit
from bertkit.errors import BertkitError
from bertkit.storage.outputs import locked_output


def test_an_exported_run_has_the_same_weights_and_predicts_the_same(workspace: Path, tmp_path: Path) -> None:
    found = bertkit.export(workspace / "tuned", to="huggingface", output=tmp_path / "out", progress="quiet")
    assert (found.heads, found.left_out, found.is_for_a_task) == (("class",), (), True)
    before, after = (
        load_file(each / "model.safetensors") for each in (workspace / "tuned" / "model", tmp_path / "out")
    )
    assert before.keys() == after.keys()
    assert all(before[name].equal(after[name]) for name in before)
    text = "river stone early"
    assert bertkit.load(tmp_path / "out").classify(text) == bertkit.load(workspace / "tuned").classify(text)


def test_an_imported_run_keeps_the_heads_of_its_pretraining(workspace: Path, tmp_path: Path) -> None:
    found = bertkit.import_(workspace / "run", output=tmp_path / "out", progress="quiet")
    assert (found.heads, found.is_for_a_task) == (("mlm", "nsp"), False)
    assert bertkit.load(tmp_path / "out").fill("river [MASK]") == bertkit.load(workspace / "run").fill("river [MASK]")


def test_an_existing_model_is_replaced_only_on_request(workspace: Path, tmp_path: Path) -> None:
    bertkit.import_(workspace / "run", output=tmp_path / "out", progress="quiet")
    with pytest.raises(BertkitError, match=r"exists\. Choose another -o, or replace it with --overwrite"):
        bertkit.import_(workspace / "tuned", output=tmp_path / "out", progress="quiet")
    bertkit.import_(workspace / "tuned", output=tmp_path / "out", overwrite=True, progress="quiet")
    assert bertkit.load(tmp_path / "out").task.labels == ("bad", "good")


def test_a_second_process_is_refused_while_the_first_writes(workspace: Path, tmp_path: Path) -> None:
    with locked_output(tmp_path / "out"):
        for write in (bertkit.import_, partial(bertkit.export, to="huggingface")):
            with pytest.raises(BertkitError, match="out is being written by another process"):
                write(workspace / "run", output=tmp_path / "out")
        with pytest.raises(BertkitError, match="out is being written by another process"):
            bertkit.tokenizer_train([workspace / "a.txt"], vocab_size=60, output=tmp_path / "out", progress="quiet")
    assert not list(tmp_path.glob(".*"))
    bertkit.export(workspace / "run", to="huggingface", output=tmp_path / "new" / "out")
    assert not list((tmp_path / "new").glob(".*"))


def test_a_model_does_not_replace_the_current_folder(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (partial(bertkit.export, to="huggingface"), bertkit.import_):
        with pytest.raises(BertkitError, match=r"^\. would be replaced as a whole, and you are in it"):
            write(workspace / "tuned", output=Path(), progress="quiet")
    with pytest.raises(BertkitError, match=r"^\. would be replaced as a whole, and you are in it"):
        bertkit.load(workspace / "tuned").save(Path())


def test_an_output_that_cannot_be_a_model_is_refused_before_the_work(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertkit.api.exchange.convert", lambda *arguments, **named: pytest.fail("it is converted"))
    (tmp_path / "file").write_text("")
    with pytest.raises(BertkitError, match=r"file is a file\. Choose another -o folder"):
        bertkit.import_(workspace / "run", output=tmp_path / "file", progress="quiet")
    with pytest.raises(BertkitError, match="is not empty and holds no model"):
        bertkit.export(workspace / "run", to="huggingface", output=tmp_path, progress="quiet")


def test_a_model_is_not_written_over_itself(workspace: Path) -> None:
    with pytest.raises(BertkitError, match="is the input"):
        bertkit.import_(workspace / "run", output=workspace / "run" / "model", overwrite=True, progress="quiet")
