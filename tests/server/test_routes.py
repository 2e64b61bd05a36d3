from __future__ import annotations

from bertkit.server.routes import list_endpoints


def test_no_route_is_there_twice() -> None:
    routes = [(each.method, each.path) for each in list_endpoints()]
    assert len(set(routes)) == len(routes)


def test_only_health_is_open_without_a_key() -> None:
    assert {each.path for each in list_endpoints() if each.open} == {
        "/health",
        "/models/{model}/health",
        "/pipeline/{task}/health",
        "/ready",
        "/ping",
        "/live",
        "/warm",
    }


def test_every_route_says_what_it_does() -> None:
    assert all(each.summary and each.tag for each in list_endpoints())
