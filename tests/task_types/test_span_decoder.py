"""From the outputs of windows to an answer, or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.task_types.small_questions import TASKS
from tests.task_types.small_questions import name as name
from tests.task_types.small_questions import task as task

from bertkit.batch import Feature
from bertkit.task_types import SpanExample


def test_no_answer_has_the_lowest_score_of_all_windows() -> None:
    task = replace(TASKS["squad:v2"], max_length=11, stride=3)
    example = SpanExample("x", "Who?", "one two three four five six seven eight")
    features = [
        Feature(
            input_ids=np.zeros(11, dtype=np.int64),
            segment_ids=np.repeat([0, 1], [4, 7]),
            offsets=np.array([(0, 0)] * 4 + [(place, place + 3) for place in range(first, first + 6)] + [(0, 0)]),
        )
        for first in (0, 3)
    ]
    outputs = [{"start": np.zeros(11), "end": np.zeros(11)} for _ in features]
    outputs[0]["start"][0], outputs[1]["start"][0], outputs[1]["end"][0] = 7.0, 1.0, 2.0
    outputs[0]["start"][5] = outputs[0]["end"][5] = 0.75
    prediction = task.decode(example, features, outputs)
    assert prediction.null_odds == pytest.approx(3.0 - 1.5)
    assert prediction.text == ""
    assert prediction.score == pytest.approx(1 - sum(each.probability for each in prediction.n_best))
    spans = [each._asdict() for each in prediction.n_best]
    none = {"text": "", "start": None, "end": None, "score": prediction.score, "n_best": spans}
    assert prediction.to_dict() == {**none, "null_odds": prediction.null_odds, "num_truncated": 0}
    answered = replace(task, threshold=1.75).decode(example, features, outputs).to_dict()
    assert [answered[name] for name in ("text", "start", "end", "score")] == list(prediction.n_best[0])
    assert replace(task, threshold=1.75).decode(example, features, outputs).text == prediction.n_best[0].text != ""
