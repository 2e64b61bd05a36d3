"""The type checker behind ``make test``: beartype, which lets a whole number stand where a number is asked for.

``pytest --jaxtyping-packages=bertkit,shapes.checked`` checks every annotation of bertkit at every call: types, and the
shapes and number formats of tensors, with each letter the same size throughout one call.
"""

from __future__ import annotations

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
