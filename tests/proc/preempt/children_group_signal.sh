#!/bin/bash
# A trainer with four forked children, as a data loader's, whose whole process group gets SIGTERM, as schedulers do it:
# the save happens, nothing of the library runs in a child, the sum is whole.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_conform.sh"

broker_start
conform children 2 0 --children 4
ends_whole 2 2 1
same "notices of the job" "$(query "SELECT count(*) FROM notice WHERE job = 'children'")" 1
not grep -q 'child . ended' "$dir/children.log" || fail "a child ended"
conform children-check 2 0 --children 4 --form check
ends_whole 2 2 1
conform children-die 2 0 --children 4 --mortal # of the signal, which is their own affair
ends_whole 2 2 1
finish "four forked children and a signal to the whole group: one notice, one checkpoint, the whole sum"
