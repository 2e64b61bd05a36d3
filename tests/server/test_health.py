"""Live, ready and warm are three states."""

from __future__ import annotations

import threading

import pytest
from tests.server.running import get, post, running, wait_until

from bertkit.server.keys import ApiKeys
from bertkit.server.models import ServedModel
from bertkit.server.run import Server


def test_a_server_that_answers_is_all_three(server: Server) -> None:
    for path in ("/live", "/ready", "/warm", "/health", "/ping"):
        assert get(server, path).status_code == 200


def test_while_models_load_the_server_lives_and_is_not_ready(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    may_load, asked = threading.Event(), {}

    def ask(server: Server) -> None:
        asked.update({path: get(server, path).status_code for path in ("/live", "/ready", "/warm")})
        # A handler reads the encoder, which would be loaded in the event loop, beside the thread that loads it.
        refused = post(server, "/embed", {"inputs": "a"})
        asked["/embed"] = refused.status_code
        assert refused.headers["retry-after"] == "1"
        may_load.set()

    monkeypatch.setattr(ServedModel, "warm_up", lambda model: may_load.wait(20))
    with running(loaded[:1], while_loading=ask) as server:
        assert asked == {"/live": 200, "/ready": 503, "/warm": 503, "/embed": 503}
        assert get(server, "/ready").status_code == 200


def test_a_stopping_server_is_not_ready_and_refuses_work(loaded: list[ServedModel]) -> None:
    with running(loaded[:1]) as server:
        server.service.state.accepted += 1  # a request that holds the server up
        server.stop()
        assert get(server, "/live").status_code == 200
        assert get(server, "/ready").status_code == 503
        refused = post(server, "/predict", {"inputs": "a"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        server.service.state.accepted -= 1


def test_a_server_whose_loop_has_ended_neither_lives_nor_is_ready(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        raise MemoryError

    with running(loaded[:1]) as server:
        assert get(server, "/ready").status_code == 200
        batcher = server.service.batcher
        wait_until(lambda: len(batcher._condition._waiters) > 0)  # type: ignore[attr-defined]  # the loop has begun
        monkeypatch.setattr(batcher, "_admit", fail)
        assert post(server, "/embed", {"inputs": "a"}).status_code == 200  # the loop was waiting for it
        wait_until(lambda: batcher.has_ended)
        assert post(server, "/embed", {"inputs": "a"}).status_code == 503, "nobody waits for it"
        reply = get(server, "/ready")
        assert (reply.status_code, reply.json()["error"]) == (
            503,
            "the thread of the models has ended: start the server again",
        )
        assert get(server, "/live").status_code == 503, "only a new start helps"


@pytest.mark.parametrize("path", ["/health", "/ready", "/ping", "/models/words/health", "/models/none/health"])
def test_names_of_models_need_a_key(loaded: list[ServedModel], path: str) -> None:
    models = [each for each in loaded if each.name in ("words", "reviews")]
    with running(models, keys=ApiKeys(("a-long-key",))) as server:
        reply = get(server, path)
        known = get(server, path, authorization="Bearer a-long-key").status_code
    assert reply.status_code == 200, "whether there is a model of this name is for those with a key"
    assert known == (404 if "none" in path else 200)
    assert "words" not in reply.text + str(reply.headers)
    assert "reviews" not in reply.text + str(reply.headers)


def test_a_task_is_healthy_if_a_model_can_do_it(loaded: list[ServedModel]) -> None:
    with running(loaded[:1], keys=ApiKeys(("a-long-key",))) as server:
        for task, status in (("text-classification", 200), ("question-answering", 424), ("summarization", 404)):
            path = f"/pipeline/{task}/health"
            assert get(server, path, authorization="Bearer a-long-key").status_code == status
            assert get(server, path).status_code == 200, "which models there are is for those with a key"
