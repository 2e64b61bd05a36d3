"""One request while it is being answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertkit.errors import BertkitError
from bertkit.server.errors import ServerError, invalid, unable
from bertkit.server.inputs import place_of, refuse_repetition
from bertkit.server.jobs import Job, Operation, TooLongError, Usage
from bertkit.server.models import EMBED, ServedModel
from bertkit.server.service import Service

BY_REQUEST = "ask for its end to be cut off with truncate: true"
BY_SERVER = "start the server with --auto-truncate"


@dataclass(slots=True)
class Call:
    """A request: its ``headers`` in lower case, the parameters of its path, and what answering it needed.

    ``task`` is Hugging Face's name of what was done, for the metrics.
    """

    service: Service
    headers: Mapping[str, str]
    path_parameters: Mapping[str, str]
    request_id: str
    method: str = "POST"
    path: str = "/"
    query: Mapping[str, str] = field(default_factory=dict)
    deadline: float = 0.0
    model: str = ""
    task: str = ""
    usage: Usage = field(default_factory=Usage)
    entered: bool = False

    def enter(self) -> None:
        """Count the request as accepted: a stopping server waits for it."""
        self.entered = True
        self.service.state.accepted += 1

    def leave(self) -> None:
        """The request has been answered, or its client has left."""
        self.service.state.accepted -= self.entered
        self.entered = False

    def find_model(
        self, name: object, task: str | None = None, prefer: Callable[[ServedModel], bool] = lambda model: True
    ) -> ServedModel:
        """The model that the request is for: that of its path, of its body, or the first that can do ``task``.

        ``name`` is what the body has; 422 where it is no text. Of several it is the first that ``prefer`` accepts.
        """
        if name is not None and not isinstance(name, str):
            raise invalid("`model` must be a string", "model")
        model = self.service.model(self.path_parameters.get("model", name), task, prefer)
        self.model, self.task = model.name, task or model.tasks[0]
        return model

    def find_embedder(self, name: object) -> ServedModel:
        """The model that makes vectors; without a name the first that was trained for it, else the first of all."""
        return self.find_model(name, EMBED, lambda model: model.makes_vectors)

    def find_deadline(self) -> float:
        """When the answer must be there: the time of the whole request, or as long from now as a request may take."""
        return self.deadline or time.monotonic() + self.service.limits.seconds

    async def run(
        self,
        model: ServedModel,
        operation: Operation,
        inputs: Sequence[Any],
        *,
        truncate: bool | None = None,
        remedy: str = "",
        pairs: bool = False,
        field: str = "inputs",
        places: Sequence[str] | None = None,
    ) -> list[Any]:
        """The results of an operation for all inputs.

        ``truncate`` is what the request says; None leaves it to the server. ``remedy`` is how the end of a text that is
        too long could be cut off, if it can.
        ``field`` is for errors, with the number of an input, or ``places`` has that of each input; of ``pairs`` the two
        texts are too long together.
        """
        cut = self.service.truncate if truncate is None else truncate
        job = Job(operation, inputs, self.find_deadline(), cut, model.name)
        refuse_repetition(job.characters, self.service.limits, field)
        try:
            results = await asyncio.wrap_future(self.service.batcher.submit(job))
        except TooLongError as error:
            place = place_of(field, error.number, len(inputs)) if places is None else places[error.number]
            raise _explain_length(error, place, remedy, pairs=pairs) from error
        except BertkitError as error:
            raise unable(model.describe_error(error)) from error
        except MemoryError as error:
            raise ServerError(503, "the server is out of memory", retry_after=1.0) from error
        self._count(job)
        return results

    def _count(self, job: Job) -> None:
        job.usage.inputs, job.usage.characters = len(job.inputs), job.characters
        job.usage.tokens = sum(each.num_tokens for each in job.encoded)
        job.usage.truncated_inputs = sum(each.num_truncated > 0 for each in job.encoded)
        job.usage.truncated_tokens = sum(each.num_truncated for each in job.encoded)
        self.usage.add(job.usage)


def _explain_length(error: TooLongError, place: str, remedy: str, *, pairs: bool) -> ServerError:
    """TEI's sentence with the field of the request, and what to do."""
    advice = f"Shorten {'one of the two texts' if pairs else 'the text'}{f', or {remedy}' if remedy else ''}."
    name = "inputs" if place.partition("[")[0] in ("inputs", "texts") else place  # TEI's word for its own fields
    message = f"Input validation error: `{name}` must have less than {error.limit + 1} tokens. Given: {error.given}."
    return ServerError(422, message, field=place, hint=advice, code="too_long")
