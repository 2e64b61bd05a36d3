"""The verbs from text files to token ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

import bertkit
from bertkit.batch import id_of
from bertkit.errors import BertkitError

TEXTS = [f"The mill by the river ran for {number} years. It stopped in the winter of {number}." for number in range(99)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS))
    return path


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte-bpe", "words"])
def test_every_kind_of_tokenizer_is_trained_shown_and_used(
    file: Path, tmp_path: Path, kind: Literal["wordpiece", "bpe", "byte-bpe", "words"]
) -> None:
    trained = bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=290, kind=kind, progress="quiet")
    shown = bertkit.tokenizer_show(tmp_path / "tok", "The mill.")
    assert [each.id for each in shown] == [id_of(token) for token in trained.encode("The mill.").ids]
    manifest = bertkit.prepare([file], tokenizer=tmp_path / "tok", output=tmp_path / "data", progress="quiet")
    assert manifest.vocab_size == trained.vocab_size


def test_wordpiece_options_are_refused_for_other_kinds(file: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="are for wordpiece; the rules of bpe are fixed"):
        bertkit.tokenizer_train([file], output=tmp_path / "tok", kind="bpe", cased=True, progress="quiet")


def test_accents_and_case_are_kept_on_request(file: Path, tmp_path: Path) -> None:
    file.write_text("Été à Évian. " * 99)
    cased = bertkit.tokenizer_train([file], output=tmp_path / "a", vocab_size=60, cased=True, progress="quiet")
    assert "É" in "".join(map(cased.id_to_token, range(cased.vocab_size)))
    plain = bertkit.tokenizer_train([file], output=tmp_path / "b", vocab_size=60, progress="quiet")
    assert not {"É", "é", "E"} & set("".join(map(plain.id_to_token, range(5, plain.vocab_size))))
    accented = bertkit.tokenizer_train([file], output=tmp_path / "c", vocab_size=60, accents="keep", progress="quiet")
    assert "é" in "".join(map(accented.id_to_token, range(accented.vocab_size)))


def test_tokenizers_are_compared_on_a_text(file: Path, tmp_path: Path) -> None:
    for size in (60, 200):
        bertkit.tokenizer_train([file], output=tmp_path / f"{size}", vocab_size=size, progress="quiet")
    small, large = bertkit.tokenizer_compare([tmp_path / "60", tmp_path / "200"], texts=[file])
    assert [small.vocab_size, large.vocab_size] == [60, large.vocab_size]
    assert small.tokens_per_word > large.tokens_per_word >= 1
    assert small.unknown >= large.unknown == 0
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(BertkitError, match="there is no word in the text"):
        bertkit.tokenizer_compare([tmp_path / "60"], texts=[tmp_path / "empty.txt"])


def test_a_tokenizer_learns_from_a_sample(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.txt").write_text(f"word{chr(97 + number % 26)} " * 99)
    files = sorted(tmp_path.glob("*.txt"))
    options: Any = {"kind": "words", "vocab_size": 99, "progress": "quiet"}
    whole = bertkit.tokenizer_train(files, output=tmp_path / "whole", **options)
    half = bertkit.tokenizer_train(files, output=tmp_path / "half", sample=0.5, **options)
    again = bertkit.tokenizer_train(files, output=tmp_path / "again", sample=0.5, **options)
    assert half.vocab_size < whole.vocab_size
    assert half.fingerprint == again.fingerprint


def test_offsets_are_characters_of_the_text(file: Path, tmp_path: Path) -> None:
    bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=200, progress="quiet")
    text = "The  mill, 1985"
    views = bertkit.tokenizer_show(tmp_path / "tok", text)
    assert "".join(text[each.start : each.end] for each in views) == "Themill,1985"


def test_a_corpus_is_checked(file: Path) -> None:
    assert not bertkit.corpus_check([file]).problems
    file.write_bytes("caf\xe9".encode("latin-1"))
    assert bertkit.corpus_check([file]).problems


def test_a_corpus_too_small_to_hold_out_anything_is_reported(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=200, progress="quiet")
    file.write_text(TEXTS[0])
    bertkit.prepare([file], tokenizer=tmp_path / "tok", output=tmp_path / "data", progress="plain")
    assert "nothing is held out: 18 tokens are too few for it" in capsys.readouterr().err


def test_words_that_a_tokenizer_splits_are_added_to_it(file: Path, tmp_path: Path) -> None:
    base = bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=60, progress="quiet")
    more = tmp_path / "more.txt"
    more.write_text("Quagmire quagmire, zeppelin! Quagmires: 1985 mill.")
    larger = bertkit.tokenizer_train(
        [more], from_=tmp_path / "tok", output=tmp_path / "larger", vocab_size=base.vocab_size + 2, progress="quiet"
    )
    added = [larger.id_to_token(id) for id in range(base.vocab_size, larger.vocab_size)]
    assert added[0] == "quagmire"  # twice, so it saves the most tokens
    assert len(added) == 2
    assert [larger.id_to_token(id) for id in larger.encode("A quagmire.").ids].count("quagmire") == 1
    assert larger.encode("the river").ids == base.encode("the river").ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 60}, "--from has 60 subwords already: give a larger number"),
        ({"vocab_size": 99, "cased": True}, "are those of --from: leave them out"),
        ({"vocab_size": 99, "kind": "bpe"}, "are those of --from: leave them out"),
    ],
)
def test_words_are_added_under_the_rules_of_the_tokenizer(
    file: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=60, progress="quiet")
    with pytest.raises(BertkitError, match=message):
        bertkit.tokenizer_train([file], from_=tmp_path / "tok", output=tmp_path / "larger", progress="quiet", **options)


def test_words_are_added_to_wordpiece_only(file: Path, tmp_path: Path) -> None:
    bertkit.tokenizer_train([file], output=tmp_path / "tok", kind="bpe", vocab_size=90, progress="quiet")
    with pytest.raises(BertkitError, match="has no WordPiece tokenizer; bertkit adds words to WordPiece only"):
        bertkit.tokenizer_train(
            [file], from_=tmp_path / "tok", output=tmp_path / "larger", vocab_size=99, progress="quiet"
        )


def test_the_tokenizer_of_a_run_prepares_text(workspace: Path, tmp_path: Path) -> None:
    manifest = bertkit.prepare(
        [workspace / "a.txt"], tokenizer=workspace / "run", output=tmp_path / "d", progress="quiet"
    )
    assert (
        manifest.tokenizer
        == bertkit.prepare(
            [workspace / "a.txt"], tokenizer=workspace / "tok", output=tmp_path / "e", progress="quiet"
        ).tokenizer
    )


def test_a_folder_with_other_files_is_not_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "tok").mkdir()
    (tmp_path / "tok" / "thesis.txt").write_text("mine")
    with pytest.raises(BertkitError, match=r"tok holds other files, such as thesis\.txt"):
        bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=99, progress="quiet")
    (tmp_path / "tok" / "thesis.txt").unlink()
    for _ in range(2):
        bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=99, overwrite=True, progress="quiet")
    (tmp_path / "tok" / "tokenizer.json").write_text("{}")
    with pytest.raises(BertkitError, match=r"tokenizer\.json is damaged"):
        bertkit.tokenizer_show(tmp_path / "tok", "a text")


def test_a_folder_is_its_text_files_for_every_verb(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "b.md").write_text("# A heading\n\nAnd a sentence. " * 9)
    (folder / "a.png").write_bytes(b"x")
    file.rename(folder / "a.txt")
    skipped = f"skipped 1 file without text: {folder / 'a.png'}"
    report = bertkit.corpus_check([folder])
    assert [each.file for each in report.files] == [str(folder / "a.txt"), str(folder / "b.md")]
    assert skipped in report.lines()
    bertkit.tokenizer_train([folder], output=tmp_path / "tok", vocab_size=90, progress="plain")
    manifest = bertkit.prepare([folder], tokenizer=tmp_path / "tok", output=tmp_path / "data", progress="plain")
    assert [source.documents for source in manifest.sources] == [1, 1]
    assert capsys.readouterr().err.count(skipped) == 2


def test_the_field_of_records_is_named_for_every_verb_that_reads_texts(tmp_path: Path) -> None:
    """The error about several fields says so."""
    records = tmp_path / "papers.jsonl"
    records.write_text("".join(f'{{"title": "{number}", "abstract": "{text}"}}\n' for number, text in enumerate(TEXTS)))
    with pytest.raises(BertkitError, match=r"which field is the text\? .* Name one with --field"):
        bertkit.tokenizer_train([records], output=tmp_path / "tok", vocab_size=290, progress="quiet")
    assert bertkit.corpus_check([records]).problems
    assert not bertkit.corpus_check([records], field="abstract").problems
    bertkit.tokenizer_train([records], output=tmp_path / "tok", field="abstract", vocab_size=290, progress="quiet")
    assert [each.token for each in bertkit.tokenizer_show(tmp_path / "tok", "mill")] == ["mill"]
    (fit,) = bertkit.tokenizer_compare([tmp_path / "tok"], texts=[records], field="abstract")
    assert fit.unknown == 0


def test_bytes_that_are_not_utf8_are_replaced_on_request(file: Path, tmp_path: Path) -> None:
    file.write_bytes(file.read_bytes() + "caf\xe9".encode("latin-1"))
    with pytest.raises(BertkitError, match=r"is not UTF-8.* with --on-bad-bytes replace"):
        bertkit.tokenizer_train([file], output=tmp_path / "tok", vocab_size=290, progress="quiet")
    bertkit.tokenizer_train([file], output=tmp_path / "tok", on_bad_bytes="replace", vocab_size=290, progress="quiet")
    assert len(bertkit.tokenizer_compare([tmp_path / "tok"], texts=[file], on_bad_bytes="replace")) == 1


def test_rules_beside_a_tokenizer_that_has_its_own_are_refused_and_leave_no_folder(file: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    bertkit.tokenizer_train([file], output=base, vocab_size=290, progress="quiet")
    with pytest.raises(BertkitError, match="are those of --from: leave them out"):
        bertkit.tokenizer_train([file], output=tmp_path / "new", from_=base, cased=True, progress="quiet")
    assert not (tmp_path / "new").exists()
