from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.config.jobs import JOB, Job, Network, Optimizer

from bertkit.config.records import from_plain, to_plain
from bertkit.errors import BertkitError, usage_error


@dataclass(frozen=True, kw_only=True)
class Inner:
    width: int

    def __post_init__(self) -> None:
        raise usage_error(f"width is {self.width}, and it must be even.")


@dataclass(frozen=True, kw_only=True)
class Models:
    by_name: Mapping[str, Network] = field(default_factory=dict)
    in_order: tuple[Network, ...] = ()
    perhaps: Network | None = None


def test_a_record_is_written_to_json_and_read() -> None:
    job = Job(data=Path("a b"), optimizer=Optimizer(lr=0.1, clip=1.0), layers=(7,), until=Path("end"))
    assert from_plain(Job, to_plain(job)) == job
    assert to_plain(job)["until"] == "end"


def test_unknown_keys_are_found_in_mappings_lists_and_optional_records() -> None:
    models = Models(by_name={"lr": Network(), "wide": Network(width=99)}, in_order=(Network(),), perhaps=Network())
    assert from_plain(Models, to_plain(models)) == models
    for value in ({"by_name": {"a": {"widht": 1}}}, {"in_order": [{"widht": 1}]}, {"perhaps": {"widht": 1}}):
        with pytest.raises(BertkitError, match=r"unknown key .*widht"):
            from_plain(Models, value)


def test_a_record_with_an_unknown_key_is_an_error() -> None:
    record = to_plain(JOB)
    record["optimizer"]["wamup"] = 1
    with pytest.raises(BertkitError, match=r"run.json: unknown key optimizer.wamup. Did you mean optimizer.warmup\?"):
        from_plain(Job, record, source="run.json")
    with pytest.raises(BertkitError, match=r"run\.json: Expected `float`, got `str`"):
        from_plain(Job, {"data": "x", "optimizer": {"lr": "1"}}, source="run.json")


def test_an_error_of_a_record_inside_of_another_is_a_sentence() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Outer:
        inner: Inner

    with pytest.raises(BertkitError, match=r"^run\.json: width is 3, and it must be even\.$"):
        from_plain(Outer, {"inner": {"width": 3}}, source="run.json")
