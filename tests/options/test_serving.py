from __future__ import annotations

import pytest

from bertkit.errors import BertkitError
from bertkit.options.serving import ServeOptions


def test_only_this_machine_is_served_by_default() -> None:
    options = ServeOptions(models=["m"])
    assert (options.host, options.cors_origin, options.auto_truncate) == ("127.0.0.1", (), False)


@pytest.mark.parametrize("setting", [{"port": 65536}, {"port": -1}, {"max_requests": 0}, {"timeout": 0.0}])
def test_settings_have_ranges(setting: dict[str, float]) -> None:
    with pytest.raises(BertkitError, match=next(iter(setting))):
        ServeOptions(models=["m"], **setting)  # type: ignore[arg-type]
