# lib_crash.sh - a job whose broker is killed at one point after another, and started again each time.
# A point is a place and what is there, as "commit_after:event-decision": broker/base/failpoint.def, from the binary.
. "$(dirname "${BASH_SOURCE[0]}")/lib_lanes.sh"
crash_points_list=$(dirname "${BASH_SOURCE[0]}")/crash_points.txt # each point and its story

# Keeps a broker running: killed at a point, it comes back, and the order is gone. Any other end is told and final.
keep_broker() {
    local code pid

    while :; do
        rm -f "$dir/port"
        MUSTER_FAIL_POINT_FILE=$order "$musterd" --db "$db" --listen "$ipc" --port-file "$dir/port" </dev/null \
            >>"$dir/musterd.log" 2>&1 &
        pid=$!
        echo "$pid" >"$dir/broker.pid"
        code=0
        wait "$pid" 2>/dev/null || code=$?
        [ "$code" = 137 ] || { echo "$code" >"$dir/broker.ended" && return; }
        rm -f "$order"
        [ ! -e "$dir/next" ] || mv "$dir/next" "$order" # it was killed so that its next start has an order
        echo killed >>"$dir/kills"
    done
}

keeper_start() {
    : >"$dir/kills"
    keep_broker &
    keeper=$!
    started+=("$keeper")
    broker=$ipc
    await "the broker's port" kept_broker_is_there
}
kept_broker_is_there() {
    [ ! -f "$dir/broker.ended" ] || fail "musterd ended with exit code $(cat "$dir/broker.ended")"
    [ -s "$dir/port" ]
}
keeper_stop() {
    await "the broker to be there" kept_broker_is_there
    kill -TERM "$(cat "$dir/broker.pid")"
    wait "$keeper"
    same "musterd's exit code" "$(cat "$dir/broker.ended")" 0
    rm -f "$dir/broker.pid" "$dir/broker.ended"
}
kills() { wc -l <"$dir/kills"; }

newest() { query "SELECT coalesce(max(step), 0) FROM checkpoint WHERE job = '$job' AND state = 'committed'"; }
killed_or_beyond() { [ "$(kills)" -gt "$1" ] || committed_beyond "$2"; }
committed_beyond() { [ "$(newest)" -gt "$1" ]; }
rounds_ended() { [ 0 = "$(query "SELECT count(*) FROM round WHERE state IN ('freezing', 'decided', 'writing')")" ]; }

# One life of the job with a round of cause $cause in it; $1 and $2 are the orders for its start and for the round.
crash_cycle() {
    local before been until="$dir/until"

    before=$(newest) been=$(kills)
    rm -f "$until"
    [ -z "$1" ] || give_order "$1"
    ranks_start 2 --until-file "$until"
    await "the ranks to start" all_step
    [ "$before" = 0 ] || committed_whole "$before"
    [ -z "$2" ] || give_order "$2"
    case $cause in
    termination) kill -TERM "${pids[1]}" ;;
    operator) order_save "$before" ;;
    # they come by themselves, the first perhaps before the order was given
    policy) [ -z "$2" ] || await "the broker's end, or three saves" killed_or_beyond "$been" $((before + 90)) ;;
    esac
    await "a checkpoint after step $before" committed_beyond "$before"
    if [ "$cause" = termination ]; then
        ranks_end 42
    else
        touch "$until"
        ranks_end 0
    fi
    each_has resumed "$before"
    sums_right
    same "restored by each rank" "$(rank_resumes)" "$before $before"
    invariants
}
# A tool whose broker dies is told nothing, and one that asks a broker just started may be asked to come again.
order_save() {
    local deadline=$((SECONDS + patience))

    until "$muster" save --broker "$broker" --job "$job" --timeout 1 >"$dir/save.log" 2>&1 || committed_beyond "$1"; do
        [ "$SECONDS" -lt "$deadline" ] || fail "the order to save was not taken: $(cat "$dir/save.log")"
    done
}
all_step() { rank_said 0 '^at step' && rank_said 1 '^at step'; }
rank_resumes() { for rank in 0 1; do sed -n 's/^opened at step //p' "$(log $rank)"; done | xargs; }

# Points that a round may do without, as its timing is.
by_chance='EVENTS_GET|HEARTBEAT|ALIVE|PING|SNAPSHOT|progress|QUERY|ROWS|send_.*:event-'

# crash_at PHASE POINT - cycles until the broker was killed there.
crash_at() {
    local before try

    before=$(kills)
    for try in 1 2 3; do
        case $1 in
        start) crash_cycle "kill $2" '' ;;
        round) crash_cycle '' "kill $2" ;;
        esac
        rm -f "$order"
        [ "$(kills)" -eq "$before" ] || return 0
    done
    return 1
}

# What lanes of lib_crash_stories.sh have in common with those here. A lane counts in reached and missed.

# point_missed POINT WHEN - in all tries; the broker came by it when the story was told without a kill.
point_missed() {
    missed=$((missed + 1))
    say "not reached: $1"
    grep -Eq "$by_chance" <<<"$1" || fail "the broker came by $1 $2"
}

crash_lane_ends() {
    await "the end of every round" rounds_ended
    keeper_stop
    finish
    say "lane: reached $reached missed $missed databases $checked"
}

# trace_story FILE STORY LANE... - the lane tells its story without a kill, and what it comes by goes to FILE.trace*.
trace_story() {
    (lane_in "$1-trace" && "${@:3}" <<<"trace $1.trace") >"$1.log" 2>&1 || {
        cat "$1.log"
        fail "$2 without a kill"
    }
    awk 'NR == FNR { if ($2 == "never") never[$1]; next } $1 in never' "$crash_points_list" "$1".trace* | sort -u >"$1.never"
    [ ! -s "$1.never" ] || fail "$2 comes by what crash_points.txt takes for never: $(xargs <"$1.never")"
}

# share_of LANE COUNT - of the lines on stdin, dealt to so many lanes.
share_of() { awk -v i="$1" -v n="$2" 'NR % n == i'; }

# crash_lane CAUSE LAYOUT - takes points "PHASE POINT" from stdin, phase start or round; one cycle for each.
crash_lane() {
    local phase point before reached=0 missed=0

    cause=$1 job=$1-$2
    options=(--step-ms 4 --say-every 1 --steps 1000000)
    [ "$2" = replicated ] || options+=(--sharded 1)
    case $cause in
    termination) options+=(--barrier 1) ;;
    policy) options+=(--save-every 30) ;;
    esac
    keeper_start
    while read -r phase point; do
        if [ "$phase" = trace ]; then
            crash_cycle "trace $point.start" "trace $point.round"
            rm "$order"
        elif crash_at "$phase" "$point"; then
            reached=$((reached + 1))
        else
            point_missed "$point" "before, and now not in 3 rounds"
        fi
    done
    saved=$(newest) # to the end of it, beside a run that nobody interrupted
    ranks_start 2 --steps $((saved + 40)) --save-every 0
    all_finished $((saved + 40))
    interrupted=$(field 0 sum)-$(field 1 sum)
    interrupted_job=$job interrupted_to=$((saved + 40))
    job=uninterrupted
    ranks_start 2 --steps "$interrupted_to" --save-every 0 --step-ms 0
    ranks_end 0
    same "sums of $interrupted_job and of an uninterrupted run" "$interrupted" "$(field 0 sum)-$(field 1 sum)"
    crash_lane_ends
}

# crash_points CAUSE LAYOUT FILE - the points that this story comes by, one "PHASE POINT" a line, found by running it.
crash_points() {
    trace_story "$3" "the story" crash_lane "$1" "$2"
    sort -u "$3.trace.round" | sed 's/^/round /' >"$3"
    sort -u "$3.trace.start" | comm -23 - <(sort -u "$3.trace.round") | sed 's/^/start /' >>"$3"
}

# crash_lanes_start COUNT CAUSE LAYOUT FILE - the points of FILE, dealt to so many lanes.
crash_lanes_start() {
    local lane

    for ((lane = 0; lane < $1; lane++)); do
        share_of "$lane" "$1" <"$4" >"$4.$lane"
        [ -s "$4.$lane" ] || continue
        lane_start "$4.$lane" crash_lane "$2" "$3" <"$4.$lane"
    done
}

# crash_everywhere CAUSE KILLS_MIN - at each point of the cause's story, in both layouts; so many kills in all at least.
crash_everywhere() {
    local layout points

    needs_fail_points
    for layout in replicated sharded; do
        points="$dir/$layout"
        crash_points "$1" "$layout" "$points"
        crash_lanes_start 4 "$1" "$layout" "$points"
        lanes_end
        reached=$(lane_sum reached)
        say "$1, $layout: killed at $reached of $(wc -l <"$points") points ($(lane_sum missed) by chance not reached), $(lane_sum databases) databases checked"
        total=$((${total:-0} + reached))
        lanes=() lane_logs=()
    done
    holds "kills in rounds by $1" "$total" -ge "$2"
    finish "the broker killed at $total points of a round by $1, both layouts, and started again: each round's checkpoint" \
        "is whole and resumed from bit for bit, integrity and invariants hold in each database"
}
