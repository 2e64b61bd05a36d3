"""Systems: their model folders, what they need, and how they are fine-tuned."""

from __future__ import annotations

from pathlib import Path

from bertkit.reproduction.corpora import Corpora
from bertkit.reproduction.paper import System
from bertkit.reproduction.scales import PAPER, SMOKE, Scale
from bertkit.reproduction.systems import Systems
from bertkit.scheduling import order_units


def plan(tmp_path: Path, scale: Scale = SMOKE) -> Systems:
    return Systems(Corpora(scale=scale, files=(), output=tmp_path))


def test_a_pretrained_system_is_the_model_of_its_run(tmp_path: Path) -> None:
    model = plan(tmp_path).find(System("gpt"))
    assert model.model == tmp_path / "pretraining" / "gpt" / "model"
    assert (model.profile, model.step, model.share) == ("gpt", SMOKE.steps, 1.0)
    assert [unit.name for unit in order_units([model.unit])][-2:] == ["data-bpe", "pretraining-gpt"]


def test_a_system_is_planned_once(tmp_path: Path) -> None:
    systems = plan(tmp_path)
    assert systems.find(System("ltr")) is systems.find(System("ltr"))
    assert systems.find(System("ltr", lstm=True)).unit is systems.find(System("ltr")).unit


def test_snapshots_have_their_share_of_the_cost(tmp_path: Path) -> None:
    model = plan(tmp_path).find(System("ltr", snapshot=1))
    assert model.model == tmp_path / "pretraining" / "ltr" / "models" / "step-00000010"
    assert (model.name, model.step, model.share) == ("ltr@1", 10, 0.5)


def test_lstms_on_top_are_a_setting_of_fine_tuning(tmp_path: Path) -> None:
    model = plan(tmp_path).find(System("ltr", lstm=True))
    assert model.settings == {"lstm_layers": 2}
    assert model.model == tmp_path / "pretraining" / "ltr" / "model"


def test_equal_flop_needs_both_unmatched_runs(tmp_path: Path) -> None:
    systems = plan(tmp_path)
    unit = systems.find(System("gpt", match="flop")).unit
    assert [each.name for each in unit.needs] == ["data-bpe", "pretraining-bert-base", "pretraining-gpt"]
    assert set(systems.pretrainings) == {"pretraining-gpt=flop", "pretraining-bert-base", "pretraining-gpt"}


def test_word_models_need_their_elmo_and_vectors(tmp_path: Path) -> None:
    model = plan(tmp_path).find(System("bidaf-elmo"))
    assert [each.name for each in model.unit.needs] == ["pretraining-elmo", "vectors"]
    assert model.pretraining == tmp_path / "pretraining" / "elmo"
    assert model.settings == {"optimizer.lr": SMOKE.baseline_lr, "epochs": SMOKE.baseline_epochs}
    assert plan(tmp_path, PAPER).find(System("bidaf")).settings == {}
    matched = plan(tmp_path).find(System("bilstm-elmo-attn", match="parameters"))
    assert matched.pretraining == tmp_path / "pretraining" / "elmo=parameters"


def test_only_bert_has_cased_versions_and_only_where_the_scale_is_uncased(tmp_path: Path) -> None:
    systems = plan(tmp_path, PAPER)
    assert systems.has_cased(System("bert-base"))
    assert not systems.has_cased(System("gpt"))
    assert not systems.has_cased(System("elmo-crf"))
    assert not plan(tmp_path).has_cased(System("bert-base"))
    unit = systems.find(System("bert-base", cased=True)).unit
    assert [unit.name, unit.needs[0].name] == ["pretraining-bert-base-cased", "data-wordpiece-cased"]
