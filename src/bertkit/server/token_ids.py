"""Token ids in place of texts. They mean something only in one vocabulary, so they are checked against the model's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bertkit.server.errors import invalid
from bertkit.server.inputs import check_number
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel


async def read_ids(
    inputs: str | list[int | str | list[int]], model: ServedModel, limits: Limits, field: str
) -> str | list[str]:
    """Texts as they are; ids, flat for one text or nested for several, as the text that has them.

    422 for too many inputs, for ids outside the vocabulary, for ids that no text has, and for a mixture of texts and
    ids.
    """
    if isinstance(inputs, str):
        return inputs
    if inputs and not isinstance(inputs[0], int):
        check_number(inputs, limits, field)
    texts = [each for each in inputs if isinstance(each, str)]
    if len(texts) == len(inputs):  # most requests: without a change of threads, which takes 0.1 ms
        return texts
    return await asyncio.to_thread(_read, inputs, model, field)


def _read(inputs: Sequence[int | str | list[int]], model: ServedModel, field: str) -> list[str]:
    if all(isinstance(each, int) for each in inputs):
        return [_text(model, [each for each in inputs if isinstance(each, int)], field)]
    texts: list[str] = []
    for number, each in enumerate(inputs):
        place = f"{field}[{number}]"
        if isinstance(each, int):
            raise invalid(f"`{place}` is a token id among texts", place)
        texts.append(each if isinstance(each, str) else _text(model, each, place))
    return texts


def _text(model: ServedModel, ids: Sequence[int], field: str) -> str:
    tokenizer = model.pipeline.tokenizer
    size = tokenizer.vocab_size
    wrong = [id for id in ids if not 0 <= id < size]
    if wrong:
        raise invalid(f"`{field}` has the token id {wrong[0]}; the vocabulary has ids from 0 to {size - 1}", field)
    specials = {tokenizer.start_id, tokenizer.end_id}
    inner = [id for id in ids if id not in specials]
    text = tokenizer.decode(inner)
    if tokenizer.encode(text).ids != inner:
        raise invalid(f"`{field}` are token ids that no text has with this tokenizer: send the text itself", field)
    return text
