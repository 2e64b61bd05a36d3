from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.encoders.bert import size
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.pretraining import model_size
from bertkit.pretraining.model_size import affordable_tokens, check_memory, count_parameters, sketch_model
from bertkit.pretraining.record import PretrainRun


def run_of(name: str, vocab_size: int) -> PretrainRun:
    return PretrainRun(data=Path("data"), output=Path("run"), encoder=size(name, vocab_size=vocab_size), steps=7)


def test_the_parameters_of_bert_base_are_those_of_the_paper() -> None:
    """110 million (paper, section 3), without the heads."""
    counts = count_parameters(run_of("base", 30_522))
    assert counts["embeddings"] == (30_522 + 512 + 2) * 768 + 2 * 768
    layer = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
    assert counts["layers"] == 12 * layer + 768 * 768 + 768
    assert round((counts["embeddings"] + counts["layers"]) / 1e6) == 109


def test_embeddings_that_a_head_shares_are_counted_once() -> None:
    counts = count_parameters(run_of("1/12/2", 99))
    mlm = 12 * 12 + 12 + 2 * 12 + 99
    nsp = 2 * 12 + 2
    assert counts["heads"] == mlm + nsp


def test_a_sketch_has_shapes_and_no_memory(run: PretrainRun) -> None:
    parameters = list(sketch_model(run).parameters())
    assert all(parameter.is_meta for parameter in parameters)
    assert sum(parameter.numel() for parameter in parameters) == sum(count_parameters(run).values())


def test_affordable_tokens_take_six_operations_per_parameter(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_size, "expected_speed", lambda device, precision: 30e9)
    run = replace(run, precision="float32")
    parameters = sum(count_parameters(run).values())
    assert affordable_tokens(run, 7.0) == pytest.approx(7 * 30e9 / (6 * parameters))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("10000/12/2", {"batch_size": 100_000}),  # states
        ("9000/100000/2", {}),  # parameters
        ("2/12/2", {"batch_size": 1_000_000, "seq_length": 1_000_000, "micro_batch_size": 1}),  # ids
    ],
)
def test_a_run_that_cannot_fit_into_memory_is_refused_quickly(
    name: str, changes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_size, "total_memory", lambda device: 2**40)
    with pytest.raises(BertkitError, match=r"needs [\d,]+ GiB of memory or more, and there are 1,024 GiB") as caught:
        check_memory(replace(run_of(name, 99), **changes))  # type: ignore[arg-type]
    assert caught.value.exit_code == WRONG_USAGE


def test_memory_is_counted_without_building_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, gradients and a moment; eight states of 16 bits per layer and token; eight bytes per id."""
    run = run_of("7/12/2", 99)
    parameters, tokens = sum(count_parameters(run).values()), run.batch_size * run.seq_length
    needed = 12 * parameters + tokens * (12 * 7 * 8 * 2 + 8)
    monkeypatch.setattr(model_size, "total_memory", lambda device: needed)
    check_memory(run)
    monkeypatch.setattr(model_size, "total_memory", lambda device: needed - 1)
    with pytest.raises(BertkitError, match=f"has {parameters:,} parameters and {tokens:,} tokens per step"):
        check_memory(run)
    monkeypatch.setattr(model_size, "total_memory", lambda device: None)
    check_memory(run)


def test_the_rows_of_a_micro_batch_are_those_of_its_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short phase with a few short rows does not make the micro-batches of the long one larger."""
    long = replace(run_of("large", 30_522), batch_size=128, seq_length=512, micro_batch_size=8)
    both = replace(long, batch_size=8, seq_length=128, long_seq_length=512, long_batch_size=128, long_share=0.1)
    needed = {}
    for name, run in (("long", long), ("both", both)):
        monkeypatch.setattr(model_size, "total_memory", lambda device: 2**20)
        with pytest.raises(BertkitError, match="needs") as caught:
            check_memory(run)
        needed[name] = str(caught.value).split(" GiB")[0]
    assert needed["both"] == needed["long"]
