from __future__ import annotations

import pytest

from bertkit.options.description import list_options
from bertkit.options.explanation import AttentionOptions, ExplainOptions
from bertkit.options.job import Options


@pytest.mark.parametrize("record", [AttentionOptions, ExplainOptions])
def test_a_model_a_text_and_a_page_are_needed(record: type[Options]) -> None:
    assert [option.name for option in list_options(record) if option.required] == ["model", "text", "output"]
