"""``huggingface_hub.InferenceClient`` against a running server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import BadRequestError, HfHubHTTPError
from tests.server.running import get, post, running, served
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.server.huggingface import list_entities, task_of_body
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.run import Server
from bertkit.task_types import (
    NamedEntity,
    QuestionAnsweringTask,
    SimilarityTask,
    SpanExample,
    TagExample,
    TagPrediction,
)

EXAMPLE = TagExample("1", ("Ann", "ran", "home"), source="Ann  ran home")
PREDICTION = TagPrediction(
    ("B-PER", "O", "B-LOC"),
    (0.9, 0.8, 0.7),
    (NamedEntity("PER", "Ann", 0, 3, 0.9), NamedEntity("LOC", "home", 9, 13, 0.7)),
)


@pytest.fixture(autouse=True)
def local_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests forbid the network to huggingface_hub, which would not even reach the server beside it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)


def client(server: Server, model: str = "") -> InferenceClient:
    return InferenceClient(model=f"{server.address}/models/{model}" if model else server.address)


def by_name(loaded: list[ServedModel], name: str) -> ServedModel:
    return next(model for model in loaded if model.name == name)


def test_classes_come_with_the_probabilities_of_the_model(server: Server, loaded: list[ServedModel]) -> None:
    labels = client(server, "reviews").text_classification("the river ran")
    expected = load(by_name(loaded, "reviews").pipeline.folder).classify("the river ran")
    assert {each.label: each.score for each in labels} == pytest.approx(dict(expected.scores), abs=1e-5)
    assert [each.score for each in labels] == sorted((each.score for each in labels), reverse=True)
    assert labels[0].label == expected.label
    assert len(client(server, "reviews").text_classification("the river", top_k=2)) == 2


def test_the_query_may_name_the_model(server: Server) -> None:
    named = post(server, "/models/words", {"inputs": "the [MASK] ran"}).json()
    assert post(server, "/?model=words", {"inputs": "the [MASK] ran"}).json() == named
    for path in ("/?model=none", "/predict?model=none"):
        assert post(server, path, {"inputs": "the river"}).status_code == 404


def test_the_bare_address_serves_the_first_model(server: Server) -> None:
    named = client(server, "reviews").text_classification("the mill")
    assert client(server).text_classification("the mill") == named


@pytest.mark.parametrize("name", ["softmax", "sigmoid", "none"])
def test_the_client_may_choose_the_activation(server: Server, name: str) -> None:
    scores = {
        each.label: each.score
        for each in client(server, "reviews").text_classification("the mill", function_to_apply="none")
    }
    functions = {
        "softmax": lambda x: np.exp(x) / sum(np.exp(each) for each in scores.values()),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "none": lambda x: x,
    }
    found = client(server, "reviews").text_classification("the mill", function_to_apply=name)  # type: ignore[arg-type]
    for each in found:
        assert each.score == pytest.approx(functions[name](scores[each.label]), abs=1e-6)


def test_masks_are_filled(server: Server) -> None:
    best = client(server, "words").fill_mask("the [MASK] ran", top_k=3)
    assert len(best) == 3
    assert best[0].score >= best[1].score
    assert best[0].sequence == f"the {best[0].token_str} ran".replace(" ##", "")
    several = post(server, "/models/words", {"inputs": "the [MASK] [MASK]", "parameters": {}}).json()
    assert [len(each) for each in several] == [5, 5]


def test_targets_are_the_only_candidates(server: Server) -> None:
    found = client(server, "words").fill_mask("the [MASK] ran", targets=["river", "mill"])
    assert {each.token_str for each in found} == {"river", "mill"}
    assert client(server, "words").fill_mask("the [MASK] ran", targets=["River"])[0].token_str == "river"
    with pytest.raises(HfHubHTTPError, match='"xylophone" is not a single token of the vocabulary'):
        client(server, "words").fill_mask("the [MASK] ran", targets=["river", "xylophone"])


def test_a_text_without_a_mask_is_an_error_that_the_client_shows(server: Server) -> None:
    with pytest.raises(HfHubHTTPError, match=r"has no \[MASK\]: write \[MASK\] in place of a word"):
        client(server, "words").fill_mask("the river ran")


def test_entities_have_characters_of_the_text(server: Server) -> None:
    text = "Ann ran past the mill"
    entities = client(server, "names").token_classification(text)
    assert entities
    for each in entities:
        assert each.start is not None
        assert text[each.start : each.end] == each.word
    words = client(server, "names").token_classification(text, aggregation_strategy="none", ignore_labels=[])
    assert [each.word for each in words] == text.split()
    assert all(each.entity for each in words)


def test_a_pair_may_be_an_object_as_for_the_pipelines_of_transformers(server: Server) -> None:
    path, object_ = "/models/inference", {"text": "the river", "text_pair": "the mill"}
    expected = post(server, path, {"inputs": [["the river", "the mill"]], "parameters": {}}).json()
    for inputs in (object_, [object_]):
        body = {"inputs": inputs, "parameters": {}, "options": {"wait_for_model": True}}
        assert post(server, path, body).json() == expected


def test_zero_shot_of_a_model_that_cannot_infer_says_so(server: Server) -> None:
    body = {"inputs": "the river", "parameters": {"candidate_labels": ["water", "money"]}}
    reply = post(server, "/models/reviews", body)
    assert reply.status_code == 424
    assert 'has no label "entailment"' in reply.json()["error"]


def test_answers_have_characters_of_the_context(server: Server) -> None:
    context = "seven wide rivers ran slowly past the old stone mill " * 3
    answer = client(server, "questions").question_answering(question="who ran", context=context)
    assert not isinstance(answer, list)
    assert context[answer.start : answer.end] == answer.answer
    best = client(server, "questions").question_answering(
        question="who ran", context=context, top_k=3, max_answer_len=2
    )
    assert isinstance(best, list)
    assert len(best) == 3


def test_a_question_may_have_no_answer_only_if_asked(server: Server) -> None:
    asked = client(server, "questions").question_answering(
        question="who", context="a river", handle_impossible_answer=True, top_k=20
    )
    assert isinstance(asked, list)
    total = sum(each.score for each in asked)
    assert total <= 1 + 1e-6


def test_vectors_are_those_of_the_pipeline_with_length_one(server: Server, loaded: list[ServedModel]) -> None:
    texts = ["the river ran", "the old mill"]
    expected = load(by_name(loaded, "words").pipeline.folder).embed(texts, normalize=True)
    for text, row in zip(texts, expected, strict=True):
        found = client(server, "words").feature_extraction(text)
        assert found.dtype == np.float32
        assert found[0] == pytest.approx(row, abs=1e-5)
    cut = client(server, "words").feature_extraction("the river", dimensions=3, normalize=True)
    assert np.linalg.norm(cut) == pytest.approx(1, abs=1e-6)
    assert cut.shape == (1, 3)


def test_sentences_are_compared_by_the_cosine(server: Server, loaded: list[ServedModel]) -> None:
    found = client(server, "words").sentence_similarity("the river", other_sentences=["the river", "old coins"])
    pipeline = load(by_name(loaded, "words").pipeline.folder)
    assert found == pytest.approx([1.0, pipeline.similarity("the river", "old coins")], abs=1e-5)


@pytest.mark.parametrize("field", ["source_sentence", "sentences"])
def test_the_sentence_that_is_too_long_is_named(server: Server, field: str) -> None:
    inputs = {"source_sentence": "the river", "sentences": ["old coins", "the mill"]}
    inputs[field] = "river " * 999 if field == "source_sentence" else ["the mill", "river " * 999]
    reply = post(server, "/models/words/pipeline/sentence-similarity", {"inputs": inputs})
    assert reply.status_code == 422
    assert (f"inputs.{field}" if field == "source_sentence" else "inputs.sentences[1]") in reply.text


def test_labels_without_examples_come_from_an_inference_model(server: Server) -> None:
    one = client(server, "inference").zero_shot_classification("the river ran", candidate_labels=["water", "money"])
    assert sum(each.score for each in one) == pytest.approx(1)
    several = client(server, "inference").zero_shot_classification(
        "the river ran", candidate_labels=["water", "money"], multi_label=True, hypothesis_template="It is {}."
    )
    assert sum(each.score for each in several) != pytest.approx(1)


def test_older_clients_get_the_older_form_of_zero_shot(server: Server) -> None:
    body = {"inputs": "a river", "parameters": {"candidate_labels": ["x", "y"], "multi_label": False}}
    old = post(server, "/models/inference", body, user_agent="unknown/None; hf_hub/1.1.7; python/3.11.7").json()
    assert set(old) == {"sequence", "labels", "scores"}
    new = post(server, "/models/inference", body, user_agent="unknown/None; hf_hub/1.2.0; python/3.11.7").json()
    assert [each["label"] for each in new] == old["labels"]


def test_several_labels_are_decided_by_their_thresholds(server: Server) -> None:
    (labels,) = post(server, "/models/topics", {"inputs": "the mill", "parameters": {}}).json()
    predicted = {each["label"]: each["predicted"] for each in labels}
    assert predicted["mill"] is True  # its threshold is 0
    assert predicted["river"] is False  # 1
    assert sum(each["score"] for each in labels) != pytest.approx(1)


def test_a_choice_is_made(server: Server) -> None:
    body = {"inputs": {"prompt": "the river", "choices": ["ran", "counted", "mill"]}}
    ranked = post(server, "/pipeline/multiple-choice", body).json()
    assert sorted(each["index"] for each in ranked) == [0, 1, 2]
    assert sum(each["score"] for each in ranked) == pytest.approx(1)


def test_more_choices_than_a_batch_may_have_are_refused(server: Server) -> None:
    body = {"inputs": {"prompt": "the river", "choices": ["ran"] * 65}}
    found = post(server, "/pipeline/multiple-choice", body)
    assert (found.status_code, "65 choices; 64 are allowed" in found.text) == (422, True)
    body["inputs"]["choices"] = ["ran", "stood"]
    assert post(server, "/pipeline/multiple-choice", body).status_code == 200


def test_errors_are_shown_by_the_client(server: Server) -> None:
    with pytest.raises(BadRequestError, match="`inputs` cannot be empty"):
        client(server, "reviews").text_classification(" ")
    with pytest.raises(HfHubHTTPError, match=r"must have less than 34 tokens\. Given: 6"):
        client(server, "reviews").text_classification("river " * 60)
    with pytest.raises(HfHubHTTPError, match=r"must have less than 12 tokens\. Given: 20"):
        client(server, "questions").question_answering(question="river " * 20, context="a river")
    with pytest.raises(HfHubHTTPError, match=r'no model is named "revews"\. Did you mean "reviews"\?'):
        client(server, "revews").text_classification("a river")
    with pytest.raises(HfHubHTTPError, match="does not answer questions; it can do: text-classification"):
        client(server, "reviews").question_answering(question="who", context="a river")


def test_every_task_has_its_own_path(server: Server) -> None:
    found = post(server, "/pipeline/text-classification", {"inputs": ["the river", "the mill"]}).json()
    assert [len(each) for each in found] == [3, 3]
    assert post(server, "/pipeline/nonsense", {}).status_code == 404


def test_the_task_of_a_body_without_parameters_is_vectors_for_an_encoder(loaded: list[ServedModel]) -> None:
    words, reviews = by_name(loaded, "words"), by_name(loaded, "reviews")
    assert task_of_body(words, {"inputs": "a"}) == "feature-extraction"
    assert task_of_body(words, {"inputs": "a", "parameters": {}}) == "fill-mask"
    assert task_of_body(reviews, {"inputs": "a"}) == "text-classification"
    assert task_of_body(reviews, {"inputs": {"question": "a", "context": "b"}}) == "question-answering"


def test_a_candidate_has_its_own_id_in_the_vocabulary(server: Server, loaded: list[ServedModel]) -> None:
    tokenizer = by_name(loaded, "words").pipeline.tokenizer
    body = {"inputs": "the [MASK] ran", "parameters": {"top_k": tokenizer.vocab_size}}
    found = post(server, "/models/words", body).json()
    assert sorted(each["token"] for each in found) == list(range(tokenizer.vocab_size))
    assert all(tokenizer.id_to_token(each["token"]) == each["token_str"] for each in found)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"model": 5, "inputs": "x"}, "model"),
        ({"model": {}, "inputs": "x"}, "model"),
        ({"inputs": "x", "parameters": 5}, "parameters"),
        ({"inputs": "x", "parameters": "candidate_labels"}, "parameters"),
    ],
)
def test_a_wrong_type_is_named(server: Server, body: dict[str, object], field: str) -> None:
    reply = post(server, "/", body)
    assert (reply.status_code, reply.json()["field"]) == (422, field)


def test_settings_of_vectors_are_read_from_the_parameters_too(server: Server) -> None:
    path = "/pipeline/feature-extraction"
    given = {"normalize": False, "dimensions": 3}
    plain = post(server, path, {"inputs": "a river", **given}).json()
    assert post(server, path, {"inputs": "a river", "parameters": given}).json() == plain
    mixed = post(server, path, {"inputs": "a river", "parameters": given, "normalize": True}).json()
    assert np.linalg.norm(mixed[0]) == pytest.approx(1, abs=1e-6)
    long = {"inputs": "river " * 90, "model": "words"}
    assert post(server, path, long).status_code == 422
    assert post(server, path, {**long, "parameters": {"truncate": True}}).status_code == 200
    unknown = post(server, path, {"inputs": "a river", "parameters": {"normalise": False}})
    assert (unknown.status_code, unknown.json()["field"]) == (422, "parameters.normalise")


def test_the_general_routes_of_a_similarity_model_give_vectors(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    encoder, task = make_encoder(tokenizer), SimilarityTask(name="s", max_length=33)
    model = Model(encoder, task.objectives(encoder))
    save_model(tmp_path / "similar", model, tokenizer, metadata={"task": task.record()})
    with running(served(tmp_path, "similar")) as server:
        expected = post(server, "/embed", {"inputs": "a river"}).json()
        for path, body in (
            ("/", {"inputs": "a river"}),
            ("/models/similar", {"inputs": "a river", "parameters": {}}),
            ("/invocations", {"inputs": ["a river"]}),
        ):
            np.testing.assert_allclose(post(server, path, body).json(), expected, rtol=0, atol=1e-6)
        instances = post(server, "/predict", {"instances": [{"inputs": "a river"}]}).json()
        np.testing.assert_allclose(instances["predictions"], expected, rtol=0, atol=1e-6)
        compared = {"inputs": {"source_sentence": "a river", "sentences": ["a river"]}}
        assert post(server, "/", compared).json() == pytest.approx([1], abs=1e-5)


def test_the_stride_is_the_overlap_of_two_windows(server: Server, loaded: list[ServedModel]) -> None:
    """A window of 33 tokens holds the question, three special tokens and a part of the context."""
    model = by_name(loaded, "questions")
    context = "the old river ran past the mill and nobody counted the stones of it " * 4
    tokens = model.pipeline.tokenizer.encode("who ran").ids
    room = 33 - len(tokens) - 3
    body = {"inputs": {"question": "who ran", "context": context}, "model": "questions"}
    path = "/pipeline/question-answering"
    for overlap in (1, room - 1):
        assert isinstance(model.task, QuestionAnsweringTask)
        task = replace(model.task, stride=room - overlap)
        features = task.encode(SpanExample("0", "who ran", context), model.pipeline.tokenizer)
        reply = post(server, path, {**body, "parameters": {"doc_stride": overlap}})
        used = sum(len(each) for each in features)
        assert (reply.status_code, reply.headers["x-compute-tokens"]) == (200, str(used))
    refused = post(server, path, {**body, "parameters": {"doc_stride": room}})
    assert (refused.status_code, refused.json()["field"]) == (422, "parameters.doc_stride")
    assert f"{room} tokens of the context" in refused.json()["error"]


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"max_seq_len": 1}, "parameters"),
        ({"max_seq_len": 5}, "parameters.max_seq_len"),
        ({"doc_stride": 20}, "parameters"),
    ],
)
def test_windows_that_cannot_be_or_are_too_many_are_refused(
    loaded: list[ServedModel], parameters: dict[str, int], field: str
) -> None:
    inputs = {"question": "who ran", "context": "the river ran " * 200}
    with running(loaded, Limits(queued_tokens=2000)) as server:
        reply = post(
            server, "/models/questions/pipeline/question-answering", {"inputs": inputs, "parameters": parameters}
        )
    assert (reply.status_code, reply.json()["field"]) == (422, field)


def test_sentences_that_fill_the_queue_are_compared(loaded: list[ServedModel]) -> None:
    inputs = {"source_sentence": "the river", "sentences": ["the river ran"] * 90}
    with running(loaded, Limits(queued_tokens=452, batch_tokens=200)) as server:
        reply = post(server, "/models/words/pipeline/sentence-similarity", {"inputs": inputs})
    assert (reply.status_code, len(reply.json())) == (200, 90)


@pytest.mark.parametrize(("name", "most"), [("top_k", 100), ("max_answer_len", 1000)])
def test_candidates_for_an_answer_are_limited(server: Server, name: str, most: int) -> None:
    inputs = {"question": "who ran", "context": "the river ran"}
    path = "/models/questions/pipeline/question-answering"
    assert post(server, path, {"inputs": inputs, "parameters": {name: most}}).status_code == 200
    reply = post(server, path, {"inputs": inputs, "parameters": {name: most + 1}})
    assert (reply.status_code, reply.json()["field"]) == (422, f"parameters.{name}")


@pytest.mark.parametrize("text", ["[MASK] " * 3 + "a" * 10_000, "[MASK]" * 200])
def test_an_answer_that_would_be_too_large_is_refused(server: Server, text: str) -> None:
    body = {"inputs": text, "parameters": {"top_k": 90}}
    reply = post(server, "/models/words/pipeline/fill-mask", body)
    assert (reply.status_code, reply.json()["field"]) == (422, "parameters.top_k")


def test_cutting_off_is_advised_where_it_can_be_asked_for(server: Server) -> None:
    long, labels = "the river " * 60, ["mill", "coin"]
    path, body = "/models/inference", {"inputs": long, "parameters": {"candidate_labels": labels}}
    reply = post(server, path, body)
    assert (reply.status_code, reply.json()["field"]) == (422, "inputs")
    assert "truncate: true" in reply.json()["error"]
    cut = post(server, path, {"inputs": long, "parameters": {"candidate_labels": labels, "truncate": True}})
    assert {each["label"] for each in cut.json()} == set(labels)
    similar: dict[str, object] = {"source_sentence": long, "sentences": labels}
    routes: list[tuple[str, object, dict[str, object]]] = [
        ("/models/inference", long, {"candidate_labels": labels}),
        ("/models/reviews", long, {}),
        ("/models/words/pipeline/feature-extraction", long, {}),
        ("/models/words/pipeline/sentence-similarity", similar, {}),
    ]
    for path, inputs, parameters in routes:
        given = {"inputs": inputs, "parameters": parameters}
        assert "truncate: true" in post(server, path, given).json()["hint"], path
        assert post(server, path, {**given, "truncate": True}).status_code == 200, path
        both = {"inputs": inputs, "truncate": False, "parameters": {**parameters, "truncate": True}}
        assert post(server, path, both).status_code == 422, path
    for path, inputs in (
        ("/models/choices", {"prompt": long, "choices": labels}),
        ("/models/questions", {"question": long, "context": "a river"}),
        ("/models/words", "[MASK] " + long),
    ):
        reply = post(server, path, {"inputs": inputs, "parameters": {}})
        assert reply.status_code == 422
        assert "truncate" not in reply.json()["error"]


def test_parameters_that_are_null_are_none(server: Server) -> None:
    question = {"question": "who", "context": "the mill"}
    for name, inputs in (("reviews", "a"), ("words", "a [MASK]"), ("names", "Ann"), ("questions", question)):
        assert post(server, f"/models/{name}", {"inputs": inputs, "parameters": None}).status_code == 200
    path = "/pipeline/text-classification"
    assert post(server, path, {"inputs": "a", "parameters": None, "options": {}}).status_code == 200
    assert post(server, "/predict", {"instances": ["a"], "parameters": None}).status_code == 200
    assert post(server, path, {"inputs": "a", "parameters": False}).status_code == 422


def test_a_text_with_masks_that_is_too_long_is_refused(server: Server) -> None:
    reply = post(server, "/models/words/pipeline/fill-mask", {"inputs": "[MASK] " + "the river " * 60})
    assert (reply.status_code, reply.json()["field"]) == (422, "inputs")
    assert "must have less than" in reply.json()["error"]


def test_an_endpoint_of_one_model_has_its_health_and_info(server: Server) -> None:
    assert get(server, "/models/words/health").status_code == 200
    assert get(server, "/models/none/health").status_code == 404
    assert get(server, "/models/words/info").json()["model_id"] == "words"


def test_groups_are_entities() -> None:
    found = list_entities(EXAMPLE, PREDICTION, "simple", None)
    assert found[0] == {"entity_group": "PER", "score": 0.9, "word": "Ann", "start": 0, "end": 3}
    assert [each["entity_group"] for each in list_entities(EXAMPLE, PREDICTION, "max", ["PER"])] == ["LOC"]


def test_without_groups_each_word_has_its_tag() -> None:
    found = list_entities(EXAMPLE, PREDICTION, "none", None)
    assert [(each["entity"], each["index"], each["start"]) for each in found] == [("B-PER", 1, 0), ("B-LOC", 3, 9)]
    assert len(list_entities(EXAMPLE, PREDICTION, "none", [])) == 3
