"""muster.testing: a program that goes on, one that ends early, and one that hangs."""

import sys

import pytest
from conftest import PROGRAMS, digests

from muster.testing import preempt

PROGRAM = [sys.executable, PROGRAMS / "train_numpy.py"]


def test_a_program_that_goes_on_ends_with_the_bits_of_an_uninterrupted_run(tmp_path):
    whole = preempt(
        [*PROGRAM, "400", "0", tmp_path / "whole"], directory=tmp_path / "a", ranks=2, times=0
    )
    assert (whole.code, whole.launches, whole.resumed) == (0, 1, ()), whole
    outcome = preempt(
        [*PROGRAM, "400", "0.02", tmp_path / "parts"],
        directory=tmp_path / "b",
        ranks=2,
        rank=1,
    )
    assert outcome.code == 0 and outcome.launches == 2, outcome
    (step,) = outcome.resumed
    assert step >= 10 and "1 preemption" in outcome.text
    assert f"begins at {step}" in outcome.logs[0] and f"begins at {step}" in outcome.logs[1]
    assert digests(tmp_path / "whole") == digests(tmp_path / "parts")


def test_a_program_that_ends_before_is_told_and_one_that_takes_no_step_is_killed(tmp_path):
    outcome = preempt([sys.executable, "-c", "raise SystemExit(3)"], directory=tmp_path / "a")
    assert outcome.code != 0 and outcome.launches == 0
    with pytest.raises(TimeoutError, match="step 10 of launch 1 on 1 ranks did not come"):
        preempt(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            directory=tmp_path / "b",
            patience=0.5,
        )
