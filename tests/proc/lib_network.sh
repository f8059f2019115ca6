# lib_network.sh - two network namespaces with a bad cable between them (prog_wire): the broker and rank 0 are here, the
# other ranks there. Nothing of it leaves this machine. To be sourced before lib.sh: the script starts itself again inside.

here=10.77.0.1 there=10.77.0.2 # seen by nobody else

if [ -z "${INSIDE_NETWORK:-}" ]; then
    for way in 'unshare --net' 'unshare --user --map-root-user --net'; do
        # shellcheck disable=SC2086
        ! $way true 2>/dev/null || INSIDE_NETWORK=1 exec $way bash "$0" "$@"
    done
    echo "skipped: this user cannot make a network namespace"
    exit 77
fi

# wire SETTINGS... - from now on; see prog_wire.c.
wire() {
    echo "$*" >"$dir/wire.new"
    mv "$dir/wire.new" "$dir/wire"
}
good='2 0 0 0 0'
cut_from_here='2 0 0 0 1' cut_to_here='2 0 0 0 2' cut_both='2 0 0 0 3'

wire_start() { # SEED
    local tool

    for tool in ip nsenter; do
        command -v $tool >/dev/null || { say "skipped: there is no $tool (package iproute2, util-linux)" && exit 77; }
    done
    unshare --net sleep 1000000 &
    other=$!
    started+=("$other")
    await "the other namespace" other_is_there
    wire "$good"
    "$TESTS_DIR/proc/prog_wire" "$dir/wire" "$other" "$1" >"$dir/wire.log" 2>&1 &
    wire_pid=$!
    started+=("$wire_pid")
    await "the cable" wire_said ready
    ip link set lo up
    ip addr add $here peer $there dev wire
    ip link set wire up
    nsenter --net="/proc/$other/ns/net" sh -c "ip link set lo up && ip addr add $there peer $here dev wire && ip link set wire up"
}
other_is_there() { [ "$(readlink "/proc/$other/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
wire_said() {
    grep -q "^$1" "$dir/wire.log" && return
    kill -0 "$wire_pid" 2>/dev/null || { cat "$dir/wire.log" && grep -q '^skipped' "$dir/wire.log" && exit 77; }
    return 1
}

# wire_stop ends the cable; wire_count WORD: how many packets were passed, lost, duplicated, cut.
wire_stop() {
    kill -TERM "$wire_pid"
    wait "$wire_pid"
}
wire_count() { sed -n "s/^wire: .*\b$1 \([0-9]*\).*/\1/p" "$dir/wire.log"; }

# A launch with rank 0 on this side and the others on that side.
far_ranks_start() { # WORLD OPTIONS...
    local rank

    world=$1
    shift
    launch=$((launch + 1))
    pids=() rank_through=()
    for ((rank = 0; rank < world; rank++)); do
        rank_start "$rank" "$@"
        rank_through=(nsenter --net="/proc/$other/ns/net")
    done
    rank_through=()
}
