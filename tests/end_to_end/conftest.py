"""Fixtures: a tiny BERT and a tiny GPT with random weights, and a table."""

from tests.tiny_gpt import left_to_right as left_to_right
from tests.tiny_gpt import published as published
from tests.tiny_runs import model as model
from tests.tiny_runs import no_pictures as no_pictures
from tests.tiny_runs import table as table
