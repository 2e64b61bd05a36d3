from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.tasks.glue import sst2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *((name, 0, f"{name} is 0; it must be from 1 to") for name in ("seeds", "epochs", "batch_size")),
        *((name, 0, f"{name} is 0; it must be from 1 to") for name in ("micro_batch_size", "limit", "dev_limit")),
        ("reinit_layers", -1, "reinit_layers is -1; it must be from 0 to"),
        ("lm_loss_weight", -0.5, r"lm_loss_weight is -0\.5; it must be from 0 to"),
        ("lstm_layers", -1, "lstm_layers is -1; it must be from 0 to"),
        ("layer_decay", 0.0, "layer_decay is 0.0; it must be above 0 and at most 1"),
        ("layer_decay", 1.5, "layer_decay is 1.5; it must be above 0 and at most 1"),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: float, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        FinetuneRun(task=sst2, model=Path("model"), output=Path("run"), **{name: value})  # type: ignore[arg-type]
    assert caught.value.exit_code == WRONG_USAGE


def test_the_defaults_are_in_the_grid_of_the_paper() -> None:
    run = FinetuneRun(task=sst2, model=Path("model"), output=Path("run"))
    assert (run.epochs, run.batch_size, run.optimizer.lr) == (3, 32, 5e-5)
    assert (run.schedule.warmup, run.schedule.decay) == (0.1, "linear")
