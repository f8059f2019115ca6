#!/bin/bash
# Two ranks fail in the same step: one of the two failures is the first, and every rank is told the same one. A rank
# that exits 0 early is no error.
. "$(dirname "$0")/../lib.sh"

broker_start
job=two
ranks_start 4 --steps 100000 --step-ms 20 --sharded 1 --fail-rank -2 --fail-step 15
ranks_end 1
first=$(query "SELECT error_rank FROM generation WHERE job = '$job'")
code=$(query "SELECT error_code FROM generation WHERE job = '$job'")
same "the recorded code" "$code" 7
for rank in 0 1 2 3; do
    case $(error_of "$rank") in
    *status=MUSTER_E_STEP*) ;; # its own, which it had before it could hear of another's
    *) says "$(error_of "$rank")" "status=MUSTER_E_PEER peer=$first code=7" ;;
    esac
done

job=early
ranks_start 4 --steps 60 --early-rank 2 --early-steps 20
ranks_end 0
each_has done 60 0 1 3
each_has done 20 2
same "errors of a job that a rank left early" "$(query "SELECT coalesce(error_rank, -1) FROM generation WHERE job = '$job'")" -1
each_has errors 0 0 1 3
finish "first error wins, and is the same for all" "a rank that exits 0 early disturbs nobody"
