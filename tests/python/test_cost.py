"""What a boundary of Python's costs while nothing happens."""

import json


def test_A11_a_boundary_takes_no_microsecond_and_not_two_and_a_half_bare_calls(world):
    text, _ = world.python("boundary.py", 2000).communicate(timeout=60)
    told = json.loads(text)
    assert told["step_us"] <= 1.5 and told["ratio_bare"] <= 2.5, told  # 1.7, as a rule
