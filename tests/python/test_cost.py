"""What a boundary of Python's costs while nothing happens."""

import json


def test_A11_a_boundary_takes_no_microsecond_and_a_half_and_not_half_more_than_an_empty_call(world):
    text, _ = world.python("boundary.py", 2000).communicate(timeout=60)
    told = json.loads(text)
    assert told["step_us"] <= 1.5 and told["ratio"] <= 1.5, told  # 1.1, as a rule
