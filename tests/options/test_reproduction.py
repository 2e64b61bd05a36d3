"""What the options of reproduce say about scales and tables is true."""

from __future__ import annotations

import dataclasses
import re

from bertkit.options.description import list_options
from bertkit.options.reproduction import ReproduceOptions
from bertkit.reproduction.paper import find_tables
from bertkit.reproduction.scales import SCALES, Scale

HELP = {option.name: option.help for option in list_options(ReproduceOptions)}


def test_the_scales_in_the_help_exist() -> None:
    assert all(f"{name} (" in HELP["scale"] for name in SCALES)
    assert ReproduceOptions("all").scale in SCALES


def test_the_tables_in_the_help_exist() -> None:
    names = {table.name for table in find_tables("all", SCALES["tiny"].snapshots)}
    assert {*(f"table{number}" for number in range(1, 9)), "figure5", "budget"} == names
    assert "table1 to table8, figure5, budget" in HELP["table"]


def test_the_settings_in_the_help_are_fields_of_a_scale() -> None:
    fields = {field.name for field in dataclasses.fields(Scale)}
    assert set(re.findall(r"(\w+)=", HELP["set"])) <= fields
