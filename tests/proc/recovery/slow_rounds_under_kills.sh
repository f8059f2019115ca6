#!/bin/bash
# As rounds_under_kills.sh: 200 rounds in a row in each layout, another story each time.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_chaos.sh"

rounds_under_kills 200 "${MUSTER_TEST_SEED:-$((EPOCHSECONDS % 32768))}"
