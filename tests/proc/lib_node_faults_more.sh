# lib_node_faults_more.sh - as lib_node_faults.sh, where no termination is under way: while ranks join and restore, and in
# saves by operator and by policy, also those that are written while training goes on.
. "$(dirname "${BASH_SOURCE[0]}")/lib_node_faults.sh"

start_phases='joining restoring'
save_phases='reported decided in_save saved committed'
save_causes='operator policy behind'
point_of[restoring]=core_before:RESTORED

victim_is_lost() { [ 1 = "$(query "SELECT count(*) FROM node WHERE job = '$job' AND pid = ${pids[victim]} AND state = 'lost'")" ]; }
all_step() { for rank in 0 1 2; do rank_said "$rank" '^at step' || return 1; done; }

# Whoever has ended begins again, as under a supervisor.
again() { # RANK...
    local rank

    for rank; do
        rank_is_gone "$rank" || continue
        wait "${pids[rank]}" 2>/dev/null && fail "rank $rank ended as if all was done"
        mv "$(log "$rank")" "$(log "$rank").$((++lives)).log"
        rank_start "$rank" --steps 1000000
    done
}
all_step_again() { again 0 1 2 && all_step; }
victim_is_back() { again "$victim" && [ "$lives" -gt 0 ] && rank_said "$victim" '^opened'; }

# start_fault PHASE FAULT LAYOUT - in a lane. Who dies while others wait is started again, and the launch goes on.
start_fault() {
    local first rank lives=0 one_is_there

    phase=$1 fault=$2 layout=$3 job=$2-$1-$3 victim=2
    options=(--say-every 1 --step-ms 4) # without a barrier: who has met the others would be missed by the next life
    [ "$layout" = replicated ] || options+=(--sharded 1)
    broker_start MUSTER_FAIL_POINT_FILE="$order"
    ranks_start 3 --steps 20 --save-every 10
    ranks_end 0
    first=$(committed)
    lost_or_over() { victim_is_lost; }
    world=3 launch=2 pids=()
    if [ "$phase" = joining ]; then # one of three is missing, so that nobody takes a step
        rank_start 0 --steps 1000000
        one_is_there=${pids[0]}
        rank_start 2 --steps 1000000
        await "rank 0 to restore" rank_said 0 '^opened'
        await "the victim to restore" rank_said 2 '^opened'
        harm "$fault"
        [ "$fault" = stop ] || await "the next life of the victim" victim_is_back
        rank_start 1 --steps 1000000
    else
        give_order "stop ${point_of[$phase]}"
        rank_start 2 --steps 1000000
        await "the broker to come to ${point_of[$phase]}" process_is "$broker_pid" T
        rank_start 0 --steps 1000000
        rank_start 1 --steps 1000000
        harm "$fault"
    fi
    await "all ranks to step" all_step_again
    [ "$phase" != joining ] || same "who waited is there still" "${pids[0]}" "$one_is_there"
    [ "$fault" != stop ] || same "who began again" "$lives" 0
    kill -TERM "${pids[1]}"
    all_preempted
    each_has resumed "${first##* }"
    same "committed" "$(committed)" "$first $saved"
    committed_whole "$saved"
    invariants
    finish
    say "lane: faults 1 owed 1"
}

# save_fault PHASE FAULT LAYOUT CAUSE - in a lane.
save_fault() {
    local rank code asked='' gate=() until="$dir/until"

    phase=$1 fault=$2 layout=$3 cause=$4 job=$2-$1-$3-$4
    victim=2
    [ "$layout" = sharded ] || victim=0 # its writer
    options=(--barrier 1 --save-fn 1 --say-every 1 --step-ms 4)
    [ "$layout" = replicated ] || options+=(--sharded 1)
    [ "$cause" != behind ] || options+=(--behind 1)
    [ "$cause" != policy ] || options+=(--save-every 40)
    [ "$phase" != in_save ] || gate=(--save-gate "$dir/gate")
    : >"$dir/gate"
    broker_start MUSTER_FAIL_POINT_FILE="$order"
    [ "$cause" != policy ] || [ "$phase" = in_save ] || give_order "stop ${point_of[$phase]}"
    ranks_start 3 --steps 1000000 --until-file "$until" ${gate[@]+"${gate[@]}"}
    await "the ranks to step" all_step
    if [ "$cause" != policy ]; then
        [ "$phase" = in_save ] || give_order "stop ${point_of[$phase]}"
        "$muster" save --broker "$broker" --job "$job" --timeout 60 >"$dir/save.log" 2>&1 &
        asked=$!
        started+=("$asked")
    fi
    if [ "$phase" = in_save ]; then
        await "the victim's save" some_in_save "$victim"
    else
        await "the broker to come to ${point_of[$phase]}" process_is "$broker_pid" T
    fi
    harm "$fault"
    [ "$fault" != stop ] || await "a checkpoint" has_committed
    touch "$until"
    for rank in 0 1 2; do
        code=0
        await "the end of rank $rank" rank_is_gone "$rank"
        wait "${pids[rank]}" 2>/dev/null || code=$?
        case $fault:$rank:$code in
        kill:$victim:137 | stop:*:0) ;;
        kill:*:1 | long:*:1) says "$(error_of "$rank")" 'MUSTER_E_(PEER|STALE)' ;;
        *) fail "exit code of rank $rank: $code" ;;
        esac
    done
    [ -z "$asked" ] || wait "$asked" || true # its round may have been given up
    saved=$(query "SELECT coalesce(max(step), 0) FROM checkpoint WHERE job = '$job' AND state = 'committed'")
    case $phase:$fault in
    saved:* | committed:* | *:stop) holds "step of the checkpoint" "$saved" -gt 0 ;;
    esac
    invariants
    ranks_start 3 --steps $((saved + 30)) --save-every 0
    all_finished $((saved + 30))
    [ "$saved" = 0 ] || committed_whole "$saved"
    finish
    say "lane: faults 1 owed $([ "$saved" = 0 ] && echo 0 || echo 1)"
}
has_committed() { [ -n "$(committed)" ]; }
