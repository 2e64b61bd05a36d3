"""Fixtures: a tiny model with random weights, and a table."""

from tests.tiny_runs import model as model
from tests.tiny_runs import no_pictures as no_pictures
from tests.tiny_runs import table as table
