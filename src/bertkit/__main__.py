"""``python -m bertkit`` and ``torchrun -m bertkit`` do the same as the command ``bertkit``."""

from __future__ import annotations

import sys

from bertkit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
