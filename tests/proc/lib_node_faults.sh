# lib_node_faults.sh - one rank is killed, or stopped and continued, at a phase of the round of a termination.
# The broker itself is held at the phase's point meanwhile, so that the fault meets it for certain.
. "$(dirname "${BASH_SOURCE[0]}")/lib_lanes.sh"

declare -A point_of=( # where the broker is held; in_save and saved_first are held by the ranks' saves
    [before_freeze]=core_before:NOTICE
    [reported]=core_after:REPORT:2
    [decided]=publish_before:event-decision
    [in_save]=gate
    [saved_first]=gate
    [saved]=commit_before:event-commit
    [committed]=commit_after:event-commit
    [in_exit]=core_before:LEAVE
    [on_the_way]=slow
    [manifest]=core_before:MANIFEST_DONE
)
phases='before_freeze reported decided in_save saved_first saved committed in_exit'
more_phases='on_the_way manifest' # only in slow_node_faults_more.sh
slow_step=60 # of the victim that is on its way to S: the notice comes in it
stop_short_ms=1000 # less than the silence of 5 s after which a rank is lost

process_is() { grep -q "^State:.$2" "/proc/$1/status"; }
some_in_save() { rank_said "$1" '^in the save of step'; }
survivors_ended() { for rank in 0 1 2; do [ "$rank" = "$victim" ] || rank_is_gone "$rank" || return 1; done; }
lost_or_over() { survivors_ended || [ 0 != "$(query "SELECT count(*) FROM event WHERE kind = 'node lost'")" ]; }

# reach PHASE - the job is there, and stays there until `go_on`.
reach() {
    if [ "$1" = on_the_way ]; then
        await "the decision" is_decided
        not rank_said "$victim" "^at step $slow_step\$" || fail "the victim is through with its step already"
        return
    fi
    if [ "${point_of[$1]}" != gate ]; then
        give_order "stop ${point_of[$1]}"
        kill -TERM "${pids[1]}"
        await "the broker to come to ${point_of[$1]}" process_is "$broker_pid" T
        return
    fi
    kill -TERM "${pids[1]}"
    if [ "$1" = in_save ]; then
        await "the victim's save" some_in_save "$victim"
    else # the victim has saved; the others have not
        await "the save of rank 0" some_in_save 0
        await "the victim's save to be known" victim_saved
    fi
}
victim_saved() { [ 1 = "$(query "SELECT count(*) FROM shard s WHERE rank = $victim")" ]; }
is_decided() { [ 1 = "$(query "SELECT count(*) FROM round WHERE state = 'decided' AND step = $slow_step")" ]; }
go_on() {
    rm -f "$order" "$dir/gate"
    kill -CONT "$broker_pid"
}

# harm FAULT - what happens to the victim.
harm() {
    local began_ms

    case $1 in
    kill)
        kill -KILL "${pids[victim]}"
        go_on
        ;;
    stop)
        kill -STOP "${pids[victim]}"
        go_on
        began_ms=$(now_ms)
        await "$stop_short_ms ms" passed_ms "$began_ms" "$stop_short_ms"
        kill -CONT "${pids[victim]}"
        ;;
    long)
        kill -STOP "${pids[victim]}"
        go_on
        await "the victim to be taken for lost" lost_or_over
        began_ms=$(now_ms)
        await "a little more silence" passed_ms "$began_ms" 500
        kill -CONT "${pids[victim]}"
        ;;
    esac
}

# Is the round's checkpoint owed in spite of the fault? A sharded one is not, if the victim had not saved.
is_owed() {
    case $phase in
    saved_first | saved | committed | in_exit | manifest) return 0 ;;
    esac
    [ "$fault" = stop ] || [ "$layout" = replicated ]
}

# node_fault PHASE FAULT LAYOUT - in a lane.
node_fault() {
    local rank gate=()

    phase=$1 fault=$2 layout=$3 job=$2-$1-$3
    victim=2
    [ "$layout" = sharded ] && [ "$phase" != manifest ] || victim=0 # its writer, and the manifest's
    options=(--barrier 1 --save-fn 1 --say-every 1 --step-ms 4)
    [ "$layout" = replicated ] || options+=(--sharded 1)
    [ "$phase" != on_the_way ] ||
        options+=(--signal-rank 1 --signal-step $slow_step --slow-rank "$victim" --slow-step $slow_step --slow-ms 2500)
    broker_start MUSTER_FAIL_POINT_FILE="$order"
    : >"$dir/gate"
    world=3 launch=1
    for rank in 0 1 2; do
        gate=(--save-gate "$dir/gate")
        [ "$phase:$rank" != "saved_first:$victim" ] || gate=()
        [ "${point_of[$phase]}" = gate ] || gate=()
        rank_start "$rank" --steps 100000 ${gate[@]+"${gate[@]}"}
    done
    for rank in 0 1 2; do
        await "rank $rank to step" rank_said "$rank" '^at step'
    done
    reach "$phase"
    harm "$fault"
    all_end
    if is_owed; then
        saved=$(committed)
        holds "checkpoints" "$(wc -w <<<"$saved")" = 1
    else
        same "checkpoints without the victim's shard" "$(committed)" ''
        same "culprit" "$(query "SELECT DISTINCT culprit_rank FROM round WHERE state = 'aborted'")" "$victim"
        saved=0
    fi
    invariants
    ranks_start 3 --steps $((saved + 30)) --signal-rank -1
    all_finished $((saved + 30))
    [ "$saved" = 0 ] || committed_whole "$saved"
    finish
    say "lane: faults 1 owed $([ "$saved" = 0 ] && echo 0 || echo 1)"
}

# Everybody ends, within their bounds and with a code that says what happened.
all_end() {
    local rank code

    for rank in 0 1 2; do
        await "the end of rank $rank" rank_is_gone "$rank"
        code=0
        wait "${pids[rank]}" 2>/dev/null || code=$?
        case $fault:$rank:$code in
        kill:$victim:137 | *:42) ;; # killed, or preempted
        long:$victim:1 | kill:*:1 | long:*:1) # lost, or told of a lost one, and nothing could be saved
            says "$(error_of "$rank")" 'MUSTER_E_(PEER|STALE)'
            ;;
        *) fail "exit code of rank $rank: $code" ;;
        esac
    done
}
