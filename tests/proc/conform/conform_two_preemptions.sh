#!/bin/bash
# Two preemptions in a row (theirs takes only one notice a life of the cluster), at random ranks: two checkpoints.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"

broker_start
conform twice 4 0 --notices 2
ends_whole 4 3 2
finish "two preemptions in a row: three lives, two checkpoints, the whole sum"
