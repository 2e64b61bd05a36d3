from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.tiny_bert import SENTENCES

from bertkit.contracts import Encoder
from bertkit.data.features import assemble, collate
from bertkit.encoders import bert, gpt, tagger
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference import embedding
from bertkit.inference.embedding import EmbeddingSettings, TextEmbedder, Vectors, check_layers, embed, hidden_states
from bertkit.text.wordpiece import WordPiece


def vectors_of(encoder: Bert, tokenizer: WordPiece, texts: list[str], **settings: Any) -> Vectors:
    embedder = TextEmbedder(encoder, EmbeddingSettings(**settings)).eval()
    return np.concatenate([chunk for chunk, _ in embed(embedder, tokenizer, texts, max_length=33)])


def states_of(encoder: Bert, tokenizer: WordPiece, text: str) -> list[torch.Tensor]:
    """The states (T, H) of every layer of one unpadded text."""
    batch = collate([assemble(tokenizer, text, max_length=33)], pad_id=tokenizer.pad_id)
    with torch.inference_mode():
        return [layer[0] for layer in encoder.eval()(batch, output_hidden_states=True).layers]


@pytest.mark.parametrize("layers", [(-1,), (2,), (0,), (-1, -2), (1, 0, -1)])
@pytest.mark.parametrize("pool", ["mean", "max", "cls"])
def test_a_vector_is_pooled_from_the_layers_of_its_own_text(
    encoder: Bert, tokenizer: WordPiece, pool: str, layers: tuple[int, ...]
) -> None:
    texts = [SENTENCES[0], "river", " ".join(SENTENCES)]
    found = vectors_of(encoder, tokenizer, texts, pool=pool, layers=layers)
    assert found.shape == (3, 14)
    assert found.dtype == np.dtype("float32")
    for text, vector in zip(texts, found, strict=True):
        states = states_of(encoder, tokenizer, text)
        averaged = torch.stack([states[layer] for layer in layers]).mean(dim=0)
        expected = {"mean": averaged.mean(dim=0), "max": averaged.amax(dim=0), "cls": averaged[0]}[pool]
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_normalized_vectors_have_length_1(encoder: Bert, tokenizer: WordPiece) -> None:
    plain = vectors_of(encoder, tokenizer, SENTENCES)
    normalized = vectors_of(encoder, tokenizer, SENTENCES, normalize=True)
    np.testing.assert_allclose(normalized, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)


def test_chunks_keep_the_order_and_count_what_is_cut_off(
    encoder: Bert, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "CHUNK", 64)
    texts = [" ".join(SENTENCES[place % 4].split()[place % 7 :]) for place in range(150)]
    texts[77] = " ".join(SENTENCES * 9)
    embedder = TextEmbedder(encoder, EmbeddingSettings()).eval()
    chunks = list(embed(embedder, tokenizer, iter(texts), max_length=33, batch_size=2))
    assert [len(vectors) for vectors, _ in chunks] == [64, 64, 22]
    assert [count for _, count in chunks] == [0, 1, 0]
    alone = vectors_of(encoder, tokenizer, [texts[3], texts[77], texts[149]])
    together = np.concatenate([vectors for vectors, _ in chunks])[[3, 77, 149]]
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (tagger.tiny(), "a word model has no states of layers"),
        (Bert(replace(bert.tiny().config, lstm_layers=1)), "a BERT with a BiLSTM on top gives the states of the"),
    ],
    ids=["word model", "BiLSTM"],
)
def test_networks_without_equal_layers_give_the_states_at_their_end_alone(network: Encoder, message: str) -> None:
    TextEmbedder(network, EmbeddingSettings())
    with pytest.raises(BertkitError, match=message):
        TextEmbedder(network, EmbeddingSettings(layers=(0,)))


def test_no_layer_a_layer_that_is_absent_and_an_unknown_pool_are_errors(encoder: Bert) -> None:
    with pytest.raises(BertkitError, match=r"layer 3 does not exist: the model has 2 layers, from 1 to 2; 0 is its"):
        TextEmbedder(encoder, EmbeddingSettings(layers=(-1, 3)))
    with pytest.raises(BertkitError, match="layer -4 does not exist"):
        TextEmbedder(encoder, EmbeddingSettings(layers=(-4,)))
    with pytest.raises(BertkitError, match="layers is empty"):
        EmbeddingSettings(layers=())
    with pytest.raises(BertkitError, match="layers is \\(True,\\); it must be a list of whole numbers"):
        check_layers((True,))
    unknown: Any = "median"
    with pytest.raises((BertkitError, TypeError), match="median"):  # a TypeError where types are checked at run time
        EmbeddingSettings(pool=unknown)


def test_the_first_token_of_a_left_to_right_model_is_no_vector_of_the_text() -> None:
    with pytest.raises(BertkitError, match="the first token of a left-to-right model has read no other: use mean"):
        TextEmbedder(gpt.tiny(), EmbeddingSettings(pool="cls"))


def test_weights_that_are_not_finite_give_no_vectors(encoder: Bert, tokenizer: WordPiece) -> None:
    with torch.no_grad():
        encoder.token_embedding.weight[tokenizer.cls_id] = torch.nan
    with pytest.raises(BertkitError, match="outputs are not finite"):
        vectors_of(encoder, tokenizer, ["river"])


def test_hidden_states_are_those_of_all_layers(encoder: Bert, tokenizer: WordPiece) -> None:
    feature = assemble(tokenizer, SENTENCES[1], max_length=33)
    found = hidden_states(encoder, feature, tokenizer.pad_id, "float32")
    expected = torch.stack(states_of(encoder, tokenizer, SENTENCES[1]))
    assert found.shape == (3, len(feature), 14)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_layers_are_whole_numbers() -> None:
    assert check_layers(np.array([-1, 2])) == check_layers(range(-1, 3, 3)) == (-1, 2)
    assert check_layers(-1) == (-1,)
    for layers in ("-1", 1.0, [1.0], [None], None):
        with pytest.raises(BertkitError, match=r"layers is .*; it must be a list of whole numbers, such as \[-1\]"):
            check_layers(layers)
