from __future__ import annotations

import pytest

from bertkit.errors import BertkitError
from bertkit.server.limits import Limits


@pytest.mark.parametrize("name", list(vars(Limits())))
def test_no_limit_is_zero(name: str) -> None:
    with pytest.raises(BertkitError, match=name):
        Limits(**{name: 0})
