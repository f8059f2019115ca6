"""What a boundary of Python's costs while nothing happens."""

import json


def test_A11_a_boundary_takes_no_microsecond_and_a_half_and_not_half_more_than_an_empty_call(world):
    text, _ = world.python("boundary.py", 2000).communicate(timeout=60)
    told = json.loads(text)
    assert told["step_us"] <= 1.5 and told["ratio"] <= 1.5, told  # 0.1 and 1.2, as a rule
    assert told["ratio_bare"] <= 2.2, told  # 1.6: an empty method of Python's takes 0.6 by itself
