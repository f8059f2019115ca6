"""A9: exits at random moments beside the threads and worker processes of a framework."""
# needs: torch
# needs: jax

import pytest
from test_node import CODES, exits_at_random_moments


@pytest.mark.parametrize("beside", ["torch", "jax"])
def test_A9_exits_beside_a_framework_neither_crash_nor_hang(world, beside):
    exits_at_random_moments(world, 4 * len(CODES), beside)
