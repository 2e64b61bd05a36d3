from __future__ import annotations

from dataclasses import dataclass

import pytest

from bertkit.encoder_types.settings import (
    MINIATURES,
    check_activation,
    check_heads,
    check_pad,
    configure,
    context_of,
    read_size,
)
from bertkit.encoders.bert import BertConfig
from bertkit.encoders.elmo import ElmoConfig
from bertkit.errors import BertkitError


@dataclass(frozen=True, kw_only=True)
class Config:
    vocab_size: int = 99
    hidden_size: int = 12
    num_heads: int = 3
    dropout: float = 0.1
    attention_dropout: float = 0.1
    layer_norm_eps: float = 1e-5
    initializer_range: float = 0.02
    pad_id: int = 0


def test_a_size_is_a_name_or_three_numbers() -> None:
    expected = {"num_layers": 4, "hidden_size": 256, "num_heads": 4}
    assert read_size("mini", MINIATURES) == read_size("4/256/4", MINIATURES) == expected
    with pytest.raises(BertkitError, match=r'no size named "minni". Did you mean "mini"\? There are: tiny, mini'):
        read_size("minni", MINIATURES)


def test_an_unknown_field_is_refused_with_the_nearest_one() -> None:
    assert configure(Config, "BERT", {"hidden_size": 6}) == Config(hidden_size=6)
    with pytest.raises(BertkitError, match=r'BERT has no setting "hiden_size". Did you mean "hidden_size"'):
        configure(Config, "BERT", {"hiden_size": 6})


def test_the_context_of_a_configuration_is_bidirectional_unless_it_says_otherwise() -> None:
    assert context_of(Config()) == context_of(BertConfig(vocab_size=99)) == "bidirectional"
    assert context_of(BertConfig(vocab_size=99, causal=True)) == "causal"
    assert context_of(ElmoConfig()) == "two_directions"


def test_values_out_of_range_are_refused() -> None:
    check_heads(12, 3, "neighbour_heads")
    with pytest.raises(BertkitError, match="hidden_size 12 is not a multiple of num_heads 5"):
        check_heads(12, 5, "normal")
    check_pad(98, 99)
    with pytest.raises(BertkitError, match="pad_id is 99; the vocabulary has the ids 0 to 98"):
        check_pad(99, 99)


def test_an_unknown_activation_lists_the_known_ones() -> None:
    check_activation("gelu")
    with pytest.raises(BertkitError, match=r'activation "gelo" is unknown. Did you mean "gelu"'):
        check_activation("gelo")
