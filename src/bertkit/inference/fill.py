"""The most probable words for the masks of a text, ``[MASK]`` with BERT and ``<mask>`` with RoBERTa."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from weakref import WeakKeyDictionary

import numpy as np
import torch

from bertkit.batch import IGNORE
from bertkit.contracts import SubwordTokenizer, Tokens
from bertkit.data.features import assemble, collate
from bertkit.errors import usage_error
from bertkit.machine.precision import Precision, autocast
from bertkit.model import Model
from bertkit.results import Result, Results
from bertkit.training.evaluation import evaluation_mode

_CONTINUES = "##"
_spellings: WeakKeyDictionary[SubwordTokenizer, Mapping[str, int]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, repr=False)
class Filling(Result):
    """A ``word`` for one mask, its probability, the text with it, and ``token``, its id in the vocabulary.

    The other masks of ``text`` are replaced by their most probable words. A word with ``##`` at its beginning continues
    the word before it, whatever the marks of the vocabulary are.
    """

    word: str
    probability: float
    text: str
    token: int


def fill(
    model: Model,
    tokenizer: SubwordTokenizer,
    text: str,
    *,
    top_k: int = 5,
    candidates: Sequence[int] | None = None,
    max_length: int = 512,
    precision: Precision = "float32",
) -> list[Results[Filling]]:
    """For each mask, from left to right, the ``top_k`` most probable tokens, each mask independently of the others.

    With ``candidates`` only tokens with these ids; their probabilities are still those among all tokens.
    ``model`` has the masked-LM head under the name ``mlm``.
    """
    if tokenizer.mask_id == tokenizer.unk_id:
        raise usage_error("the vocabulary of this model has no mask token, which fill needs.")
    tokens = tokenizer.encode(text, specials=True)
    masked = [index for index, token in enumerate(tokens.ids) if token == tokenizer.mask_id]
    if not masked:
        mask = tokenizer.id_to_token(tokenizer.mask_id)
        raise usage_error(f'there is no {mask} in "{text}"; write {mask} in place of a word.')
    if len(tokens.ids) + 2 > max_length:
        raise usage_error(f"the text has {len(tokens.ids):,} tokens; the model reads {max_length - 2:,} at most.")
    if isinstance(top_k, bool) or not (isinstance(top_k, Integral) and 1 <= top_k <= tokenizer.vocab_size):
        raise usage_error(f"top_k is {top_k!r}; it must be a whole number from 1 to {tokenizer.vocab_size:,}.")
    if candidates is not None:
        candidates = list(dict.fromkeys(candidates))
        if not (candidates and all(isinstance(id, Integral) and 0 <= id < tokenizer.vocab_size for id in candidates)):
            raise usage_error(f"candidates must be one or more ids of tokens, from 0 to {tokenizer.vocab_size - 1:,}.")
    probabilities, best_ids = _predict(model, tokenizer, tokens, top_k, candidates, precision)
    spans = [tokens.offsets[index] for index in masked]
    words = [[tokenizer.surface_form(token) for token in row] for row in best_ids]
    best = [row[0] for row in words]
    filled = []
    for number, (row, row_probabilities, ids) in enumerate(zip(words, probabilities, best_ids, strict=True)):
        texts = [_complete(text, spans, [*best[:number], word, *best[number + 1 :]]) for word in row]
        spelled = [_spell(*word) for word in row]
        filled.append(Results(Filling(*each) for each in zip(spelled, row_probabilities, texts, ids, strict=True)))
    return filled


def find_tokens(tokenizer: SubwordTokenizer, words: Iterable[str]) -> dict[str, int | None]:
    """The id of the token that ``fill`` shows as each of these words, or else of the only token of the word, such as
    ``paris`` for Paris where the vocabulary has no capitals. None for a word of several tokens or an unknown one."""
    shown = _spellings_of(tokenizer)
    return {word: shown.get(word, _only_token(tokenizer, word)) for word in words}


def _spellings_of(tokenizer: SubwordTokenizer) -> Mapping[str, int]:
    """The id of each word that ``fill`` shows, the first one of several; kept, as it takes 17 ms for BERT."""
    if tokenizer not in _spellings:
        _spellings[tokenizer] = {
            _spell(*tokenizer.surface_form(id)): id for id in reversed(range(tokenizer.vocab_size))
        }
    return _spellings[tokenizer]


def _only_token(tokenizer: SubwordTokenizer, word: str) -> int | None:
    ids = tokenizer.encode(word).ids
    return ids[0] if len(ids) == 1 and ids[0] != tokenizer.unk_id else None


def _predict(
    model: Model,
    tokenizer: SubwordTokenizer,
    tokens: Tokens,
    top_k: int,
    candidates: Sequence[int] | None,
    precision: Precision,
) -> tuple[list[list[float]], list[list[int]]]:
    """Probabilities and token ids, ``top_k`` for each masked position, in float32."""
    feature = assemble(tokenizer, tokens, max_length=len(tokens.ids) + 2)
    targets = np.where(feature.input_ids == tokenizer.mask_id, feature.input_ids, IGNORE)
    batch = collate([feature], pad_id=tokenizer.pad_id).with_labels(mlm=torch.from_numpy(targets)[None])
    device = next(model.parameters()).device
    with evaluation_mode(model), torch.inference_mode(), autocast(device, precision):
        logits = model(batch.to(device))["mlm"]["logits"]
    probabilities = logits[: int((targets != IGNORE).sum())].float().softmax(dim=-1)
    # A model may have more rows of embeddings than tokens, such as a multiple of 8; those are no words.
    ids = torch.arange(tokenizer.vocab_size) if candidates is None else torch.tensor(list(candidates))
    best = probabilities[:, ids.to(device)].topk(min(top_k, len(ids)), dim=-1)
    return best.values.tolist(), ids[best.indices.cpu()].tolist()


def _spell(letters: str, continues: bool) -> str:
    return _CONTINUES + letters if continues else letters


def _complete(text: str, spans: list[tuple[int, int]], words: list[tuple[str, bool]]) -> str:
    """The text with ``words`` where the masks are; a word that continues the one before it follows without a space."""
    for (start, end), (letters, continues) in sorted(zip(spans, words, strict=True), reverse=True):
        before = text[:start].rstrip() if continues else text[:start]
        text = before + letters + text[end:]
    return text
