"""Calibration bins against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from bertkit.errors import BertkitError
from bertkit.metrics.calibration import expected_calibration_error, reliability


def test_bins_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(13)
    confidences = generator.random(997)
    correct = generator.random(997) < confidences**2
    accuracies, means = calibration_curve(correct, confidences, n_bins=10)
    bins = reliability(confidences, correct)
    assert [each.accuracy for each in bins] == pytest.approx(accuracies.tolist())
    assert [each.confidence for each in bins] == pytest.approx(means.tolist())
    assert sum(each.count for each in bins) == 997


def test_calibration_error_by_hand() -> None:
    # three predictions at 0.9 of which two are right, one at 0.25 that is right
    bins = reliability([0.9, 0.9, 0.9, 0.25], [True, True, False, True])
    assert [each.count for each in bins] == [1, 3]
    assert [each.low for each in bins] == pytest.approx([0.2, 0.8])
    assert expected_calibration_error(bins) == pytest.approx((3 * (0.9 - 2 / 3) + 0.75) / 4)


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_probabilities_0_and_1_have_bins(confidence: float) -> None:
    (only,) = reliability([confidence], [True])
    assert (only.low <= confidence <= only.high) and only.count == 1


def test_no_predictions_are_an_error() -> None:
    with pytest.raises(BertkitError, match="nothing to calibrate"):
        reliability([], [])
