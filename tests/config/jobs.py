"""A record of records, whose fields the tests set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bertkit.errors import usage_error


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    lr: float = 1e-4
    warmup: int = 99
    clip: float | None = None

    def needs(self) -> dict[str, str]:
        return {} if self.clip else {"warmup": "optimizer.clip"}


@dataclass(frozen=True, kw_only=True)
class Network:
    width: int = 12
    heads: int = 3

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise usage_error(f"width {self.width} does not divide by {self.heads} heads.")


@dataclass(frozen=True, kw_only=True)
class Job:
    data: Path
    network: Network = field(default_factory=Network)
    optimizer: Optimizer = field(default_factory=Optimizer)
    decay: Literal["linear", "constant"] = "linear"
    layers: tuple[int, ...] = (1, 2)
    names: tuple[str, ...] = ()
    keep: bool = False
    until: Path | None = None


JOB = Job(data=Path("corpus"))
