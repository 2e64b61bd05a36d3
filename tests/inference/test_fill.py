from __future__ import annotations

from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch

from bertkit.data.features import assemble, collate
from bertkit.encoders.bert import Bert, size
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.inference.fill import _complete, fill, find_tokens
from bertkit.model import Model
from bertkit.pretraining.task import PretrainingTask
from bertkit.text import wordpiece
from bertkit.text.wordpiece import WordPiece


@pytest.fixture
def model(encoder: Bert) -> Model:
    return Model(encoder, PretrainingTask(objectives=("mlm",)).build_objectives(encoder))


def test_only_candidates_are_chosen(model: Model, tokenizer: WordPiece) -> None:
    text = "the old [MASK] ran"
    (every,) = fill(model, tokenizer, text, top_k=tokenizer.vocab_size)
    found = find_tokens(tokenizer, ["river", "##s", "River", "nonsense"])
    ids = list(dict.fromkeys(id for id in found.values() if id is not None))
    assert {tokenizer.id_to_token(id) for id in ids} == {"river", "##s"} & set(tokenizer.vocabulary)
    assert found["River"] == found["river"]
    assert found["nonsense"] is None
    (chosen,) = fill(model, tokenizer, text, top_k=9, candidates=ids)
    assert list(chosen) == [each for each in every if each.token in ids]


def test_every_mask_gets_top_k_words(model: Model, tokenizer: WordPiece) -> None:
    blanks = fill(model, tokenizer, "the old [MASK] ran past the [MASK].", top_k=7)
    assert [len(blank) for blank in blanks] == [7, 7]
    for blank in blanks:
        chances = [guess.probability for guess in blank]
        assert chances == sorted(chances, reverse=True)
        assert 0 < sum(chances) <= 1 + 1e-6


def test_embeddings_without_a_token_are_no_words(tokenizer: WordPiece) -> None:
    encoder = Bert(size("1/12/2", vocab_size=tokenizer.vocab_size + 5, max_positions=99))
    model = Model(encoder, PretrainingTask(objectives=("mlm",)).build_objectives(encoder))
    (every,) = fill(model, tokenizer, "the old [MASK] ran", top_k=tokenizer.vocab_size)
    assert {each.token for each in every} == set(range(tokenizer.vocab_size))
    assert sum(each.probability for each in every) < 1


def test_as_many_masks_as_a_batch_pads_are_filled(tmp_path: Path) -> None:
    """The head pads 65 rows to 66 (``nn/packing.py``)."""
    tokenizer = wordpiece.train(["the old [MASK] ran"], vocab_size=99)
    encoder = Bert(size("1/12/2", vocab_size=tokenizer.vocab_size, max_positions=99))
    model = Model(encoder, PretrainingTask(objectives=("mlm",)).build_objectives(encoder))
    assert len(fill(model, tokenizer, " ".join(["[MASK]"] * 65), top_k=1)) == 65


def test_probabilities_are_those_of_the_whole_vocabulary(model: Model, tokenizer: WordPiece) -> None:
    text = "seven [MASK] coins"
    ((best, *_),) = fill(model, tokenizer, text, top_k=3)
    feature = assemble(tokenizer, tokenizer.encode(text, specials=True), max_length=41)
    place = feature.input_ids.tolist().index(tokenizer.mask_id)
    with torch.inference_mode():
        logits = model.eval()(collate([feature], pad_id=tokenizer.pad_id))["mlm"]["logits"]
    chances = logits.view(len(feature), -1)[place].softmax(dim=-1)
    assert best.probability == pytest.approx(float(chances.max()), abs=1e-6)
    assert best.word == tokenizer.id_to_token(int(chances.argmax()))


def test_a_token_that_begins_as_a_continued_word_is_kept_as_it_is() -> None:
    """A byte-level vocabulary may have the token ``##tag``."""
    assert _complete("The <mask> is", [(4, 10)], [("##tag", False)]) == "The ##tag is"
    assert _complete("The <mask> is", [(4, 10)], [("tag", True)]) == "Thetag is"


def test_the_text_is_completed_as_it_was_written(model: Model, tokenizer: WordPiece) -> None:
    blanks = fill(model, tokenizer, "Wide,  [MASK]  and [MASK]!", top_k=tokenizer.vocab_size)
    by_word = {guess.word: guess.text for guess in blanks[0]}
    other = blanks[1][0].word
    ending = f"  and {other}!" if not other.startswith("##") else f"  and{other.removeprefix('##')}!"
    assert by_word["river"] == f"Wide,  river{ending}"
    assert by_word["##s"] == f"Wide,s{ending}"


def test_a_text_without_a_mask_is_an_error(model: Model, tokenizer: WordPiece) -> None:
    with pytest.raises(BertkitError, match=r'there is no \[MASK\] in "seven coins"') as caught:
        fill(model, tokenizer, "seven coins")
    assert caught.value.exit_code == WRONG_USAGE


def test_a_vocabulary_without_a_mask_is_an_error(model: Model, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", encoding="utf-8")
    with pytest.raises(BertkitError, match="vocabulary of this model has no mask token, which fill needs"):
        fill(model, WordPiece.load(tmp_path), "a ? a")


def test_a_text_that_is_too_long_is_an_error(model: Model, tokenizer: WordPiece) -> None:
    with pytest.raises(BertkitError, match=r"the text has 51 tokens; the model reads 39 at most"):
        fill(model, tokenizer, "[MASK] " + "river " * 50, max_length=41)


@pytest.mark.parametrize("top_k", [0, 100_000, "3", 2.0, True])
def test_top_k_has_bounds(top_k: Any, model: Model, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users' calls are not checked
    with pytest.raises(BertkitError, match=f"top_k is {top_k!r}; it must be a whole number from 1 to"):
        fill(model, tokenizer, "[MASK]", top_k=top_k)


@pytest.mark.parametrize("candidates", [[], [-5], [10_000_000], ["river"]])
def test_candidates_are_ids_of_the_vocabulary(
    candidates: Any, model: Model, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users' calls are not checked
    with pytest.raises(BertkitError, match=r"candidates must be one or more ids of tokens, from 0 to"):
        fill(model, tokenizer, "[MASK]", candidates=candidates)


def test_a_word_has_its_id(model: Model, tokenizer: WordPiece) -> None:
    for blank in fill(model, tokenizer, "[MASK] [MASK]", top_k=tokenizer.vocab_size):
        assert [tokenizer.id_to_token(guess.token) for guess in blank] == [guess.word for guess in blank]


def test_the_vocabulary_is_spelled_once_for_all_words(tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_tokens(tokenizer, ["river"])

    def fail(id: int) -> tuple[str, bool]:
        raise AssertionError("17 ms for each request")

    monkeypatch.setattr(tokenizer, "surface_form", fail)
    assert find_tokens(tokenizer, ["river"]) == first
