#!/bin/bash
# round - the quick part of the model: small configurations and every control. The larger ones are in slow_round.sh.
set -u
# shellcheck source=tests/model/lib.sh
. "$(dirname "$0")/lib.sh"

faults=(-DCRASHES=1 -DLOSSES=1 -DTAKES=1 -DTHAWS=1)

must_hold "2 nodes, no faults, policy saves" -DMAXS=3 -DEVERY=1
must_hold "2 nodes, no faults, policy saves, replicated" -DMAXS=3 -DEVERY=1 -DREPL=1
must_hold "2 nodes, crash and thaw, policy saves" -DCRASHES=1 -DTHAWS=1 -DEVERY=1
must_hold "2 nodes, loss and takeover, 2 notices" -DLOSSES=1 -DTAKES=1 -DREPL=1 -DNOTICES=2
must_hold "2 nodes, broker gone for good, thaw, policy and operator" -DDEATHS=1 -DTHAWS=1 -DEVERY=1 -DOPS=1
must_hold "2 nodes, crash, loss, takeover, thaw" "${faults[@]}"
must_hold "3 nodes, thaw, replicated" -DNN=3 -DTHAWS=1 -DREPL=1
must_end "2 nodes, crash, loss, takeover, thaw" "${faults[@]}"
must_end "2 nodes, thaw, policy saves, replicated" -DTHAWS=1 -DEVERY=1 -DREPL=1

must_fail "control: no begun < S test" I2 -DGUARD=0
must_fail "control: no begun < S test, no equal-step test" I1 -DGUARD=0 -DEQUAL=0 -DLOOK_I2=0
must_fail "control: the same, replicated" I1 -DGUARD=0 -DEQUAL=0 -DLOOK_I2=0 -DREPL=1
must_fail "control: a takeover may save" I1 -DTAKES=1 -DMAYSAVE=1
must_fail "control: the same, replicated" I1 -DTAKES=1 -DMAYSAVE=1 -DREPL=1
must_fail "control: a restarted broker decides again" I4 -DCRASHES=1 -DFORGET=1
must_fail "control: no begun < S test, seen in an undisturbed round" CALM -DGUARD=0 -DLOOK_I2=0
must_fail "control: a late decision ends the next policy save's wait" CALM -DMAXS=3 -DEVERY=1 -DREPL=1 -DKEEPASK=0
must_fail "control: nobody says PAST" OVER -DTHAWS=1 -DPASTRULE=0
must_fail "control: nobody thaws" OVER -DDEATHS=1 -DBELL=0
must_fail "reached: commit of a termination" NEVER -DWITNESS=1 # or what all the others say is empty
verdict 757422 # states
