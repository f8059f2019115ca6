# lib_relay.sh - relays as processes, and ranks that speak through them. To be sourced behind lib.sh.
# Owns: relay_pid, by the relay's name; its socket is $dir/NAME.sock and NAME.log what it said. The array `relays` has one
# name for each `ranks_each` ranks, in their order; `past` is 1 if these ranks may go past it to the broker.

declare -A relay_pid
relays=()
ranks_each=4
past=0

relay_at() { printf 'ipc://%s/%s.sock\n' "$dir" "$1"; }

relay_start() { # NAME ADDRESS [OPTION...] - reaches the broker when this returns
    local name=$1 address=$2

    shift 2
    rm -f "$dir/$name.port"
    "$musterd" --relay "$address" --listen "$(relay_at "$name")" --port-file "$dir/$name.port" "$@" \
        </dev/null >"$dir/$name.log" 2>&1 &
    relay_pid[$name]=$!
    started+=("$!")
    await "relay $name to reach the broker" relay_said "$name" 'answers$'
}
relay_said() {
    kill -0 "${relay_pid[$1]}" 2>/dev/null || fail "relay $1 ended"
    grep -q -- "$2" "$dir/$1.log"
}

relay_kill() { kill_child "${relay_pid[$1]}" "relay $1"; }
relay_is_gone() { not is_ours "${relay_pid[$1]}"; }
relay_ends() { # NAME CODE
    local code=0

    await "the end of relay $1" relay_is_gone "$1"
    wait "${relay_pid[$1]}" || code=$?
    same "exit code of relay $1" "$code" "$2"
}
relay_stop() { # NAME - an orderly end, which says under sanitizers that nothing leaked
    kill -TERM "${relay_pid[$1]}"
    relay_ends "$1" 0
}

relayed_start() { # WORLD OPTIONS... - as ranks_start, each rank through its relay
    local rank head=$broker broker

    world=$1
    shift
    launch=$((launch + 1))
    pids=()
    for ((rank = 0; rank < world; rank++)); do
        broker=$(relay_at "${relays[rank / ranks_each]}")
        [ "$past" = 0 ] || broker+=",$head"
        rank_start "$rank" "$@"
    done
}

nobody_lost() { same "ranks that were lost" "$(query "SELECT count(*) FROM event WHERE kind = 'node lost'")" 0; }
