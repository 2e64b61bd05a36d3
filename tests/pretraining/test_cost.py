from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.machine.energy import EnergyMeter
from bertkit.pretraining.cost import read_cost
from bertkit.pretraining.model_size import count_parameters
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics
from bertkit.storage.json_log import format_record


def write_metrics(run: Path, steps: list[int], **operations: int) -> None:
    """Logged steps of 100 tokens at 50 tokens per second, each with these ``operations``."""
    record = {"kind": "train", "tokens": 100, "tokens_per_second": 50.0, **operations}
    records = [*({**record, "step": step} for step in steps), {"kind": "heldout", "step": steps[-1]}]
    (run / "metrics.jsonl").write_text("".join(map(format_record, records)))


def test_a_finished_run_has_a_cost(run: PretrainRun) -> None:
    result = pretrain(replace(run, log_every=1), Progress("quiet"))
    cost = read_cost(run.output)
    assert cost.parameters == sum(count_parameters(run).values())
    assert cost.seconds == pytest.approx(result.seconds, abs=0.1)
    steps = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    assert cost.flop == sum(each["flops"] for each in steps)
    assert all(
        each["flops_per_second"] == pytest.approx(each["flops"] * each["tokens_per_second"] / each["tokens"], rel=0.01)
        for each in steps
    )


def test_a_logged_step_counts_for_the_steps_since_the_one_before(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    write_metrics(run.output, [3, 6, 10], flops=13)
    assert read_cost(run.output).flop == 10 * 13
    write_metrics(run.output, [10], flops=13)
    assert read_cost(run.output).flop == 10 * 13


def test_the_log_of_an_earlier_version_has_speeds_alone(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    write_metrics(run.output, [3, 6, 10], flops_per_second=7)
    assert read_cost(run.output).flop == 10 * 2 * 7


def test_without_operations_the_cost_is_shared_out_by_steps(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    write_metrics(run.output, [5, 10], flops=0, flops_per_second=0)
    assert read_cost(run.output, until=5).seconds == pytest.approx(read_cost(run.output).seconds / 2)


def test_the_first_steps_have_their_own_cost(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    steps = [{"kind": "train", "step": 6, "flops": 14}, {"kind": "train", "step": 10, "flops": 42}]
    (run.output / "metrics.jsonl").write_text("".join(map(format_record, steps)))
    whole, part = read_cost(run.output), read_cost(run.output, until=7)
    assert (whole.flop, part.flop) == (6 * 14 + 4 * 42, 6 * 14 + 42)
    assert part.seconds == pytest.approx(whole.seconds / 2)


def test_energy_is_in_the_log_and_in_the_cost_if_the_system_tells(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EnergyMeter, "joules", 7200.4)
    pretrain(run, Progress("quiet"))
    assert read_cost(run.output).joules == 7200.4
    steps = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    assert {each["joules"] for each in steps} == {7200}
    monkeypatch.setattr(EnergyMeter, "joules", None)
    pretrain(replace(run, output=run.output.with_name("unknown")), Progress("quiet"))
    assert read_cost(run.output.with_name("unknown")).joules is None
