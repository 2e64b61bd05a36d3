"""API keys."""

from __future__ import annotations

import base64
from pathlib import Path

import openai
import pytest
from tests.server.running import get, post, running

from bertkit.errors import BertkitError
from bertkit.server.keys import ApiKeys, is_readable_by_others
from bertkit.server.models import ServedModel

KEY = "correct-horse"


def test_a_key_is_found_in_every_form() -> None:
    keys = ApiKeys((KEY, "another-key"))
    basic = base64.b64encode(f"anyone:{KEY}".encode()).decode()
    for header in (f"Bearer {KEY}", f"bearer  {KEY}", KEY, f"Basic {basic}", "Bearer another-key"):
        assert keys.allow(header)
    for header in ("", "Bearer", "Bearer correct-hors", "Basic ???", f"Basic {base64.b64encode(b'x:y').decode()}"):
        assert not keys.allow(header)
    assert not keys.allow("Basic schlüssel".encode().decode("latin-1"))
    assert ApiKeys().allow("")
    for sent in ("Bearer schlüssel", f"Basic {base64.b64encode('x:schlüssel'.encode()).decode()}"):
        header = sent.encode().decode("latin-1")  # as the server has it
        assert ApiKeys(("schlüssel",)).allow(header)


def test_a_file_has_one_key_per_line(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# ours\n\n{KEY}\n  second-key  \n  # and theirs\n")
    keys = ApiKeys.read(path)
    assert keys.allow(f"Bearer {KEY}")
    assert keys.allow("second-key")
    assert not keys.allow("# ours")
    assert not keys.allow("# and theirs")
    path.write_text(f"{KEY}\n", encoding="utf-8-sig")
    assert ApiKeys.read(path).allow(KEY)
    path.write_text("# none\n")
    with pytest.raises(BertkitError, match="has no key"):
        ApiKeys.read(path)
    path.write_text("short\n")
    with pytest.raises(BertkitError, match="less than 8 characters"):
        ApiKeys.read(path)
    with pytest.raises(BertkitError, match="no API keys at"):
        ApiKeys.read(tmp_path / "none")


def test_a_file_that_others_can_read_is_known(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.touch(mode=0o644)
    assert is_readable_by_others(path)
    path.chmod(0o640)
    assert not is_readable_by_others(path)


def test_requests_without_a_key_are_refused_and_the_key_is_not_logged(
    loaded: list[ServedModel], capsys: pytest.CaptureFixture[str]
) -> None:
    with running(loaded[:1], keys=ApiKeys((KEY,))) as server:
        for reply in (post(server, "/predict", {"inputs": "a"}), get(server, "/v1/models"), get(server, "/metrics")):
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"].startswith("Basic"), "Chromium reads the first alone"
        assert get(server, "/health").status_code == 200
        assert post(server, "/predict", {"inputs": "a"}, authorization=f"Bearer {KEY}").status_code == 200
        client = openai.OpenAI(base_url=f"{server.address}/v1", api_key=KEY, max_retries=0)
        assert client.models.list().data[0].id == "reviews"
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{server.address}/v1", api_key="wrong-key", max_retries=0).models.list()
    assert KEY not in capsys.readouterr().err
