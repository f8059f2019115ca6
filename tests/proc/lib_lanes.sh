# lib_lanes.sh - several scenarios at once, for they mostly wait; and orders to the broker's fail points.
# A lane is a scenario in a process of its own, with its own directory, broker and jobs.

order="$dir/order" # what the fail points are told; see broker/base/failpoint.h

give_order() { # LINE - whole, or not there
    printf '%s\n' "$1" >"$order.new"
    mv "$order.new" "$order"
}

lane_in() { # DIRECTORY - the scenario's variables, for a lane of its own
    dir=$1
    mkdir -p "$dir"
    group=proc-$BASHPID # $$ is the same in all lanes
    started=() mounted=() # those of the others are not ours to end
    db="$dir/state/muster.db" ipc="ipc://$dir/broker.sock" order="$dir/order"
    cleaner=$BASHPID
    trap clean_up EXIT
}

lanes=() lane_logs=()

# lane_start NAME COMMAND... - in a lane with that directory; what it says goes to NAME.said.
lane_start() {
    local name=$1

    shift
    (lane_in "$name-lane" && "$@") >"$name.said" 2>&1 <&0 &
    lanes+=($!)
    started+=($!)
    lane_logs+=("$name.said")
}

# lanes_end - all ended well.
lanes_end() {
    local i failed=0

    for i in "${!lanes[@]}"; do
        wait "${lanes[i]}" || { failed=1 && cat "${lane_logs[i]}"; }
    done
    [ $failed = 0 ] || fail "a lane; it told why above"
}
# lane_sum WORD - of the numbers after it in the lanes' last lines, "lane: WORD n WORD n".
lane_sum() { sed -n "s/^lane: .*\b$1 \([0-9]*\).*/\1/p" "${lane_logs[@]}" | awk '{ sum += $1 } END { print sum + 0 }'; }

