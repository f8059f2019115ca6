#!/bin/bash
# Rounds in a row while ranks and broker are killed and stopped at random moments; slow_rounds_under_kills.sh has 200.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_chaos.sh"

rounds_under_kills 8 "${MUSTER_TEST_SEED:-1}"
