from __future__ import annotations

import re

import pytest

from bertkit.encoders.elmo import HDF5_NAMES, SIZES, ElmoConfig, size, tiny
from bertkit.errors import BertkitError


@pytest.mark.parametrize(("name", "projection"), [("tiny", 64), ("mini", 128)])
def test_both_directions_of_a_miniature_are_as_wide_as_the_bert_of_its_name(name: str, projection: int) -> None:
    config = size(name)
    assert (config.num_layers, config.projection_size, config.cell_size) == (2, projection, 4 * projection)
    assert sum(count for _, count in config.filters) == 2048 * projection // 512


def test_the_original_size_is_the_default_configuration() -> None:
    assert size("original") == ElmoConfig()
    assert size("2/512/4096", dropout=0.3) == ElmoConfig(dropout=0.3)


def test_an_unknown_size_lists_the_sizes() -> None:
    with pytest.raises(BertkitError, match=r'no size named "orignal". Did you mean "original"\? There are: tiny, mini'):
        size("orignal")
    assert set(SIZES) == {"small", "medium", "original"}


def test_every_parameter_has_a_name_in_the_published_files() -> None:
    ours = {re.sub(r"\d+", "{}", name) for name, _ in tiny().named_parameters()}
    assert ours == set(HDF5_NAMES)
