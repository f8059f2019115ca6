# lib_nodes.sh - hosts of `muster run --nodes` as processes of this machine. To be sourced behind lib.sh.
# Owns: host_pid, by the host's name; NAME.log is what it printed. `nodes` is what --nodes is given, `steps` how many the
# trainer takes, and the array `host_through` may be a command that becomes the host.

trainer=$TESTS_DIR/proc/prog_elastic
nodes=1:2
steps=100000
declare -A host_pid

host_start() { # NAME ARGS... - two ranks
    local name=$1

    shift
    mkdir -p "$dir/runtime-$name"
    XDG_RUNTIME_DIR="$dir/runtime-$name" timeout "$hangs_after" ${host_through[@]+"${host_through[@]}"} "$muster" run \
        --nodes "$nodes" -n 2 --job "$job" --broker "$broker" --join-wait-ms 1500 --backoff-ms 20 "$@" -- \
        ${rank_through[@]+"${rank_through[@]}"} "$trainer" "$steps" 4 >"$dir/$name.log" 2>&1 &
    host_pid[$name]=$!
    started+=("$!")
}
supervisor() { pgrep -P "${host_pid[$1]}" -x muster; } # below `timeout`
host_kill() { # NAME - as when it loses its power: nobody says that it leaves
    kill -KILL $(pgrep -P "$(supervisor "$1")" -x muster-host) "$(supervisor "$1")"
}
host_ends() { # NAME CODE
    local code=0

    wait "${host_pid[$1]}" || code=$?
    same "exit code of host $1" "$code" "$2"
}
host_says() { grep -Eq -- "$2" "$dir/$1.log"; }
hosts_of() { query "SELECT COUNT(*) FROM host WHERE job = '$job' AND launch = $1"; }
launch_is() { [ "$(query "SELECT COALESCE(MAX(launch), 0) FROM host WHERE job = '$job'")" = "$1" ]; }
trains() { # LAUNCH RANKS - that launch has steps behind its first
    [ "$(query "SELECT g.world_size FROM job j JOIN generation g USING (job, generation) JOIN progress p USING (job)
        WHERE j.job = '$job' AND j.state = 'running' AND p.done > g.resume_step + 5 LIMIT 1")" = "$2" ] && launch_is "$1"
}
