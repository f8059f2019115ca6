#!/bin/bash
# slow_round - the model at its proper size: 2 nodes with all faults in one run, 3 nodes with one kind of fault a run.
# `slow_round.sh large` searches further, for some minutes, within 2 GB: ./tools/dev model.
set -u
[ "${1:-}" != large ] || MODEL_MEMORY_MB=1950
# shellcheck source=tests/model/lib.sh
. "$(dirname "$0")/lib.sh"
faults=(-DCRASHES=1 -DLOSSES=1 -DTAKES=1 -DTHAWS=1 -DDUPS=1)

optimise=-O2
if [ "${1:-}" = large ]; then
    must_hold "2 nodes, all faults, policy each step, replicated" "${faults[@]}" -DEVERY=1 -DREPL=1
    must_hold "2 nodes, all faults, 3 steps, 3 attempts, sharded" "${faults[@]}" -DEVERY=2 -DMAXS=3 -DATT=3
    must_hold "2 nodes, all faults, 3 steps, replicated" "${faults[@]}" -DEVERY=2 -DMAXS=3 -DREPL=1
    must_hold "2 nodes, all faults and a hasty broker, replicated" "${faults[@]}" -DHASTES=1 -DREPL=1
    must_hold "2 nodes, all faults, 2 notices, replicated" "${faults[@]}" -DNOTICES=2 -DREPL=1
    must_hold "2 nodes not in step, all faults, replicated" "${faults[@]}" -DLOCKSTEP=0 -DREPL=1
    must_hold "3 nodes, crash, loss and takeover, replicated" -DNN=3 -DCRASHES=1 -DLOSSES=1 -DTAKES=1 -DREPL=1
    must_hold "3 nodes, all faults, sharded" -DNN=3 "${faults[@]}"
    must_hold "3 nodes, policy saves and 2 thaws" -DNN=3 -DEVERY=1 -DTHAWS=2
    verdict
fi
must_hold "2 nodes, all faults, policy each step, sharded" "${faults[@]}" -DEVERY=1
must_hold "2 nodes, all faults, policy each 2nd step, replicated" "${faults[@]}" -DEVERY=2 -DREPL=1
optimise=-O1
must_hold "2 nodes not in step, crash, thaw, hasty broker" -DLOCKSTEP=0 -DCRASHES=1 -DTHAWS=1 -DHASTES=1
for layout in 0 1; do
    layout_name=sharded
    [ $layout = 0 ] || layout_name=replicated
    must_hold "3 nodes, $layout_name, 2 broker crashes" -DNN=3 -DREPL=$layout -DCRASHES=2
    must_hold "3 nodes, $layout_name, loss and takeover" -DNN=3 -DREPL=$layout -DLOSSES=1 -DTAKES=1
    must_hold "3 nodes, $layout_name, 2 lost answers" -DNN=3 -DREPL=$layout -DDUPS=2
    must_hold "3 nodes, $layout_name, 2 thaws" -DNN=3 -DREPL=$layout -DTHAWS=2
    must_hold "3 nodes, $layout_name, hasty broker" -DNN=3 -DREPL=$layout -DHASTES=1
    must_hold "3 nodes, $layout_name, broker gone for good" -DNN=3 -DREPL=$layout -DDEATHS=1
    must_hold "3 nodes, $layout_name, policy saves" -DNN=3 -DREPL=$layout -DEVERY=1
done

within 180 2048

# places that a search must come to, or what it says of them is empty
must_fail "reached: commit of a termination" NEVER -DWITNESS=1
must_fail "reached: commit of a policy save" NEVER -DWITNESS=2 -DEVERY=1
must_fail "reached: commit in the generation after a takeover" NEVER -DWITNESS=3 -DLOSSES=1 -DTAKES=1 -DNOTICES=2
must_fail "reached: commit after steps were broken off" NEVER -DWITNESS=4 -DLOSSES=1 -DREPL=1
must_fail "reached: commit in a round opened after a crash" NEVER -DWITNESS=5 -DCRASHES=1
must_fail "reached: PAST" NEVER -DWITNESS=6 -DTHAWS=1
must_fail "reached: unchanged" NEVER -DWITNESS=7
must_fail "reached: a policy save is skipped" NEVER -DWITNESS=8 -DEVERY=1 -DLOSSES=1 -DREPL=0 -DTHAWS=1
verdict 7210047 # states
