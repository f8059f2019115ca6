#!/bin/bash
# lease - two brokers over one log: lease, fence, a commit in doubt, take-over; every control.
set -u
# shellcheck source=tests/model/lib.sh
. "$(dirname "$0")/lib.sh"
model=$(dirname "$model")/lease.pml

must_hold "2 brokers, crash, lost answer, doubt"
must_hold "2 brokers, a clock that jumps, crash" -DJUMPS=1 -DLOSSES=0 -DDOUBTS=0
must_fail "control: no fence" TWICE -DFENCE=0
must_fail "control: a fence in a sub-select, then the write" TWICE -DAPART=1
must_fail "control: the fence looks at the epoch alone" TWICE -DAGAIN=1
must_fail "control: a lease by the broker's own clock, behind" STOLEN -DOWNCLOCK=1
must_fail "control: the same, ahead" LATE -DOWNCLOCK=2
must_fail "control: a take-over reads a replica" TWICE -DREPLICA=1
must_fail "control: told before the answer" TOLD -DEARLY=1
must_fail "reached: told by the second broker" NEVER -DWITNESS=1
must_fail "reached: told after a doubt, by who had it" NEVER -DWITNESS=2
verdict 378971 # states
