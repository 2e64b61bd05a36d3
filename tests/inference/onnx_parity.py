"""Exports a small model with each head, and prints the largest differences between the file and the model as JSON.

A program of its own: the suite checks shapes at run time, which stops the exporter, whose sizes are symbols.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx
import torch
from torch import Tensor
from torch.nn import functional as F

from bertkit.batch import Batch
from bertkit.checkpoint.sentence_transformers import SentenceEmbedding
from bertkit.contracts import Objective
from bertkit.encoders import bert, roberta
from bertkit.encoders.bert import Bert
from bertkit.encoders.roberta import Roberta
from bertkit.errors import BertkitError
from bertkit.inference.onnx_model import OnnxModel, quantize_onnx, write_onnx
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.objectives.span_extraction import SpanExtraction
from bertkit.objectives.token_classification import TokenClassification

LENGTHS = torch.tensor([11, 3, 5, 7, 2])


def heads(encoder: Bert) -> Mapping[str, Mapping[str, Objective]]:
    width = encoder.hidden_size
    mlm = MaskedLanguageModel(encoder.token_embedding)
    return {
        "several": {
            "labels": MultiLabelClassification(width, 3, pooling="mean"),
            "number": Regression(width),
            "pair": SequenceClassification(width, 5, pooling="mean", pair_head=True),
            "span": SpanExtraction(width),
            "tags": TokenClassification(width, 5),
        },
        "choice": {"choice": MultipleChoice(width)},
        "words": {
            "class": SequenceClassification(width, 5),
            "mlm": mlm,
            "nsp": NextSentencePrediction(width),
            "span": SpanExtraction(width, question_head=True),
        },
        "vectors": {},
    }


def make_batch(name: str) -> Batch:
    mask = torch.arange(11) < LENGTHS[:, None]
    ids = torch.randint(5, 99, mask.shape).masked_fill(~mask, 0)
    segments = (torch.arange(11) >= LENGTHS[:, None] // 2).long().masked_fill(~mask, 0)
    batch = Batch(input_ids=ids, segment_ids=segments, attention_mask=mask, labels={})
    return replace(batch, rows_per_feature=torch.tensor([2, 3])) if name == "choice" else batch


@torch.no_grad()
def difference(model: Model, written: OnnxModel, batch: Batch) -> float:
    found, expected = written(batch), model(batch)
    if not expected:
        states = model.encoder(batch).hidden_states
        mean = F.normalize((states * batch.attention_mask[..., None]).sum(dim=1) / LENGTHS[:, None])
        expected = {"encoder": {"last_hidden_state": states, "sentence_embedding": mean}}
    assert {name: set(outputs) for name, outputs in found.items()} == {n: set(o) for n, o in expected.items()}
    pairs = [(expected[name][each], found[name][each]) for name in expected for each in expected[name]]
    return max(
        float((one - other).abs().max()) for one, other in (_real(*pair, batch.attention_mask) for pair in pairs)
    )


def _real(expected: Tensor, found: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The entries that are no padding."""
    if len(expected) == mask.numel():  # logits of masked words are a list of all positions
        expected = expected.view(found.shape)
    if expected.shape[:2] == mask.shape:
        return expected[mask], found[mask]
    if expected.shape == (2, 3):
        return expected.flatten()[[0, 1, 3, 4, 5]], found.flatten()[[0, 1, 3, 4, 5]]
    return expected, found


def main(folder: Path) -> None:
    torch.manual_seed(0)
    # The export of a layer takes seconds, so only one model has more than one.
    deep, encoder = bert.tiny(), Bert(replace(bert.tiny().config, num_layers=1))
    models = {name: Model(encoder, objectives).eval() for name, objectives in heads(encoder).items()}
    models["several"] = Model(deep, heads(deep)["several"]).eval()
    models["vectors"] = Model(Roberta(replace(roberta.tiny().config, num_layers=1)), {}).eval()
    differences: dict[str, object] = {}
    for name, model in models.items():
        file = folder / f"{name}.onnx"
        write_onnx(model, file, SentenceEmbedding(pool="mean", normalize=True))
        differences[name] = difference(model, OnnxModel(file, model), make_batch(name))
    inputs = {name: [each.name for each in onnx.load(folder / f"{name}.onnx").graph.input] for name in models}
    assert inputs.pop("vectors") == ["input_ids", "attention_mask"]
    assert all(each == ["input_ids", "attention_mask", "token_type_ids"] for each in inputs.values())
    model = models["choice"]
    quantize_onnx(folder / "choice.onnx", folder / "int8.onnx")
    differences["int8"] = difference(model, OnnxModel(folder / "int8.onnx", model), make_batch("choice"))
    try:
        OnnxModel(folder / "several.onnx", model)
    except BertkitError as error:
        differences["another model"] = str(error)
    sys.stdout.write(json.dumps(differences) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
