"""Pre-trainings: which there are, how they differ from BERT's, and how they are matched with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bertkit.pretraining.model_size import sketch_model
from bertkit.pretraining.record import PretrainRun
from bertkit.reproduction.paper import MASKINGS, SIZE_NAMES
from bertkit.reproduction.pretrainings import list_pretrainings, match_parameters
from bertkit.reproduction.scales import PAPER, SMOKE, TINY


def sketch(network: str) -> PretrainRun:
    return list_pretrainings(PAPER)[network].sketch()


def test_every_network_is_listed_under_its_name() -> None:
    found = list_pretrainings(SMOKE)
    assert set(found) == {*SIZE_NAMES, *MASKINGS, "no-nsp", "ltr", "gpt", "roberta", "modernbert", "elmo"}
    assert all(each.network == each.name == name for name, each in found.items())
    assert replace(found["ltr"], cased=True).name == "ltr-cased"
    assert replace(found["gpt"], match="flop").name == "gpt=flop"


def test_ablations_differ_from_bert_base_in_their_objective_only() -> None:
    bert = sketch("bert-base")
    no_nsp = sketch("no-nsp")
    assert no_nsp.task.objectives == ("mlm",)
    assert replace(no_nsp, task=bert.task, snapshots=bert.snapshots) == bert
    left_to_right = sketch("ltr")
    assert left_to_right.task.objectives == ("clm",)
    assert left_to_right.encoder.causal  # type: ignore[attr-defined]


def test_maskings_are_shares_of_the_selected_tokens() -> None:
    masking = sketch("masks-80-0-20").task.masking
    assert (masking.mask, masking.keep, masking.random) == (0.8, 0.0, 0.2)


@pytest.mark.parametrize(("network", "parameters"), [("bert-base", 110e6), ("bert-large", 336e6)])
def test_sizes_at_the_scale_of_the_paper(network: str, parameters: float) -> None:
    model = sketch_model(sketch(network))
    assert sum(each.numel() for each in model.parameters()) == pytest.approx(parameters, rel=0.02)


def test_short_trainings_have_a_lower_rate_for_wider_networks() -> None:
    found = list_pretrainings(TINY)
    narrow, wide = found["bert-base"].sketch(), found["bert-large"].sketch()
    assert narrow.optimizer.lr == 1e-3
    assert wide.optimizer.lr == pytest.approx(1e-3 * (256 / 384) ** 1.5)
    assert narrow.schedule.decay == wide.schedule.decay == "late"


def test_elmo_is_matched_to_the_parameters_of_the_layers_of_bert() -> None:
    bert, elmo = (list_pretrainings(TINY)[name].sketch() for name in ("bert-base", "elmo"))
    matched = match_parameters(elmo, bert)
    layers = sum(each.numel() for each in sketch_model(bert).encoder.get_submodule("layers").parameters())
    lstms = sum(each.numel() for each in sketch_model(matched).encoder.get_submodule("directions").parameters())
    # Widths are tried in steps of 8.
    assert lstms == pytest.approx(layers, rel=0.06)
    assert replace(matched, encoder=elmo.encoder) == elmo


def test_short_trainings_start_all_transformers_from_the_corpus() -> None:
    found = list_pretrainings(TINY)
    bert, left_to_right, gpt, elmo = (found[name].sketch() for name in ("bert-base", "ltr", "gpt", "elmo"))
    assert bert.token_init == left_to_right.token_init == gpt.token_init == "cooccurrence"
    assert bert.encoder.position_init == left_to_right.encoder.position_init == "neighbour_heads"  # type: ignore[attr-defined]
    assert bert.task.objectives == ("mlm", "nsp")
    assert elmo.token_init == sketch("bert-base").token_init == "random"
