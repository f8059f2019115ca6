# lib_crash_stories.sh - stories beside the undisturbed rounds of lib_crash.sh: what fails, is lost, withdrawn, kept,
# imported, and tasks. The broker is killed at each point that they come by and that no story before them comes by.
# story_NAME tells one, of a job that nobody told of before; wherever the broker dies in it, it goes on to its end.
. "$(dirname "${BASH_SOURCE[0]}")/lib_crash.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib_tasks.sh"

# those that wait longest come first
stories='stuck deaf_stuck observer deaf_observer failed_save deaf_failed_save peer_error deaf_peer_error withdrawn deaf_withdrawn
    joining deaf_joining skipped deaf_skipped keep forget hosts import damaged deaf_damaged manager tasks tasks_errors supervised
    deaf_supervised restarted deaf_restarted join_failed deaf_join_failed again past thawed asleep silent'

# --- what they have in common

happened() { [ 0 != "$(query "SELECT count(*) FROM event WHERE job = '$job' AND kind = '$1'")" ]; }

# tell_broker COMMAND... - a tool whose broker dies is told nothing, and asks again: the answer may be that it was done.
tell_broker() {
    local deadline=$((SECONDS + patience))

    until "$muster" "$@" --broker "$broker" --job "$job" --timeout 2 >"$dir/told.log" 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || fail "muster $*: $(cat "$dir/told.log")"
        ! grep -Eq 'too late|exists already' "$dir/told.log" || return 0
    done
}

# codes_are PATTERN [RANK...] - each of them ends, with such an exit code.
codes_are() {
    local pattern=$1 rank code

    shift
    for rank in ${@-"${!pids[@]}"}; do
        code=0
        await "the end of rank $rank of job $job" rank_is_gone "$rank"
        wait "${pids[rank]}" 2>/dev/null || code=$?
        [[ $code =~ ^($pattern)$ ]] || fail "exit code of rank $rank of job $job: $code, not $pattern"
    done
}

# goes_on RANKS - the next launch resumes at the newest checkpoint, and its weights are those of an uninterrupted run.
goes_on() {
    saved=$(newest)
    ranks_start "$1" --steps $((saved + 20))
    all_finished $((saved + 20))
    [ "$saved" = 0 ] || committed_whole "$saved"
}

# --- the stories

story_failed_save() { # aborted, tried again, and given up: a termination without a checkpoint
    options=(--sharded 1 --barrier 1 --save-fn 1 --say-every 1)
    ranks_start 2 --steps 1000000 --save-fails-rank 1
    await "the ranks to start" all_step
    kill -TERM "${pids[1]}"
    codes_are 42
    await "the word that nothing was saved" happened 'not saved'
    same "checkpoints" "$(committed)" ''
    goes_on 2
}

story_peer_error() {
    options=(--say-every 1)
    ranks_start 2 --steps 1000000 --fail-rank 1 --fail-step 10
    codes_are 1
    await "the error" rank_failed
    same "who failed" "$(query "SELECT DISTINCT error_rank FROM generation WHERE job = '$job'")" 1
    says "$(error_of 0)" MUSTER_E_PEER 'peer=1'
    goes_on 2
}

# A rank that fails tells it for a second: while no broker is there for longer, it is missed after its restart.
rank_failed() { happened 'peer error' || happened 'node lost'; }

story_withdrawn() { # a notice that leaves time for it
    options=(--say-every 1 --grace-ms 3600000)
    ranks_start 2 --steps 1000000 --until-file "$dir/until-$job"
    await "the ranks to start" all_step
    order_save 0
    await "a measured save" committed_beyond 0
    await "a measured step" is_measured
    tell_broker notify 1 --grace 3000
    tell_broker notify --cancel "$(query "SELECT id FROM notice WHERE job = '$job' ORDER BY received_unix_ms LIMIT 1")"
    await "the withdrawal" happened 'notice cancelled'
    touch "$dir/until-$job"
    codes_are 0
    sums_right
}
is_measured() { [ "$(query "SELECT min(step_p95_ms) > 0 FROM progress WHERE job = '$job'")" = 1 ]; }

story_joining() { # a termination while a rank is missing: nothing is newer than what there is
    options=(--barrier 0)
    world=3 launch=$((launch + 1)) pids=()
    rank_start 0
    rank_start 1
    await "rank 0 to join" rank_said 0 '^opened'
    await "rank 1 to join" rank_said 1 '^opened'
    kill -TERM "${pids[1]}"
    codes_are 42
    each_has computed 0
    await "a round that found nothing to save" happened unchanged
    goes_on 3
}

story_skipped() { # saves by policy after a rank left early, whose shard they would need
    options=(--sharded 1)
    ranks_start 2 --steps 1000000 --save-every 10 --early-rank 1 --early-steps 25 --until-file "$dir/until-$job"
    await "a save that is left out" happened 'save skipped'
    : >"$dir/until-$job"
    codes_are 0
    sums_right
    goes_on 2
}

# as_keeper COMMAND... - with the ranks of prog_keep
as_keeper() {
    local trainer=$TESTS_DIR/proc/prog_keep options=()

    "$@"
}
story_keep() { # pins, policies, deletions
    local last

    as_keeper ranks_start 1 '' '' '' 2 0 '{"who": "me"}'
    codes_are 0
    tell_broker pin 1 --id me
    tell_broker pin 2 --id reader --lease 1
    as_keeper ranks_start 1 'latest 1' '' '' 2 0
    codes_are 0
    says "$(committed) " '^1 .*4 '
    tell_broker unpin 1 --id me
    await "the end of a lease" nothing_is_pinned
    as_keeper ranks_start 1 'latest 1' '' '' 2 0
    codes_are 0
    last=$(committed)
    same "steps kept" "$last" 6
    same "directories" "$(cd "$dir/checkpoints-$job" && ls -d [0-9]*)" 6
    same "deletions that wait" "$(query "SELECT count(*) FROM checkpoint WHERE job = '$job' AND state = 'deleting'")" 0
}
nothing_is_pinned() { [ 0 = "$(query "SELECT count(*) FROM pin WHERE job = '$job'")" ]; }

story_forget() { # a job that has ended is forgotten, and its checkpoints are imported again
    as_keeper ranks_start 1 '' '' '' 2 0
    codes_are 0
    await "the job to be forgotten" is_forgotten
    await "the end of its rows" has_no_rows
    tell_broker import "$dir/checkpoints-$job"
    same "imported" "$(committed)" '1 2'
}
is_forgotten() {
    "$muster" forget "$job" --broker "$broker" --timeout 2 >"$dir/told.log" 2>&1 || grep -q 'no job' "$dir/told.log"
}
has_no_rows() { [ 0 = "$(query "SELECT count(*) FROM checkpoint WHERE job = '$job'")" ]; }

story_hosts() { # a host forms a launch by itself
    local code=0

    mkdir -p "$dir/runtime-hosts"
    XDG_RUNTIME_DIR="$dir/runtime-hosts" timeout "$hangs_after" "$muster" run --nodes 1 -n 2 --job "$job" --broker "$broker" -- \
        true >"$dir/hosts.log" 2>&1 || code=$?
    same "exit code of muster run" "$code" 0
    same "its place" "$(query "SELECT place, first_rank, ranks FROM host WHERE job = '$job'
        AND launch = (SELECT MAX(launch) FROM host WHERE job = '$job')")" '0|0|2'
}

story_import() { # what another broker committed, with custom metadata; then a newer copy of a directory that is known
    local from=$job told=$dir/told-of
    options=()

    if [ ! -d "$told" ]; then # once in each lane, by a broker of its own that nobody kills
        foreign_checkpoints "$told"
    fi
    cp -r "$told" "$dir/checkpoints-$job"
    rm "$dir/checkpoints-$job"/*/ROUND # a copy by hand, and of another job: it names the one that wrote it
    without_checksum "$dir/checkpoints-$job"/*/manifest.json
    sed -i "s/\"job\": \"foreign\"/\"job\": \"$from\"/" "$dir/checkpoints-$job"/*/manifest.json
    rm -rf "$dir/checkpoints-$job/.muster"
    mv "$dir/checkpoints-$job/2" "$dir/later" # a round below those that are known then
    tell_broker import "$dir/checkpoints-$job"
    same "imported" "$(committed)" '1 3'
    mv "$dir/later" "$dir/checkpoints-$job/2"
    tell_broker import "$dir/checkpoints-$job"
    same "imported" "$(committed)" '1 2 3'
    tell_broker verify
    as_keeper ranks_start 1 '' '' '' 1 0
    codes_are 0
    says "$(cat "$(log 0)")" '^resumed 3'
    same "committed" "$(committed)" '1 2 3 4'
}
foreign_checkpoints() { # DIRECTORY
    (
        dir=$dir/foreign db=$dir/foreign/state/muster.db job=foreign broker=
        mkdir "$dir"
        unset MUSTER_FAIL_POINT_FILE
        listen="ipc://$dir/broker.sock" started=()
        broker_start
        as_keeper ranks_start 1 '' '' '' 3 0 '{"who": ["me", null]}'
        codes_are 0
        broker_stop
    ) || fail "the other broker's checkpoints"
    mv "$dir/foreign/checkpoints-foreign" "$1"
}

story_damaged() { # a restore that fails, and one that falls back
    options=(--say-every 1)
    ranks_start 2 --steps 30 --save-every 10
    codes_are 0
    saved=$(newest)
    damage_byte "$(find "$dir/checkpoints-$job/$saved" -name 'shard-*')" -3
    ranks_start 2 --steps 60 --save-every 0
    codes_are 1
    await "the restore that failed" happened 'restore failed'
    ranks_start 2 --steps 60 --save-every 0 --fallback 1
    codes_are 0
    sums_right
    holds "step that they fell back to" "$(field 0 resumed)" -lt "$saved"
}

story_manager() { # saves that a function wishes for, and a deletion by name
    local trainer=$TESTS_DIR/proc/prog_manager

    options=(--every 1)
    ranks_start 2 --steps 4 --delete 1
    codes_are 0
    same "committed" "$(committed)" '1 3 4'
    options=()
    ranks_start 2 --steps 60 --step-ms 50 --function-every 2
    codes_are 0
    holds "the newest" "$(newest)" -gt 4
}

# with_workers COMMAND... - two workers, of which any that a task ended begins again
with_workers() {
    local index

    TASKS_LOG=$dir/attempts-$job && export TASKS_LOG
    : >"$TASKS_LOG"
    worker_start 0 2 2
    worker_start 1 2 0
    "$@"
    for index in 0 1; do kill -TERM "${workers[$index]}"; done
    for index in 0 1; do
        await "the end of worker $index" worker_is_gone "$index"
        wait "${workers[$index]}" || fail "exit code of worker $index: $?"
    done
    workers=()
}
story_tasks() { with_workers some_tasks; }
some_tasks() {
    coordinate run 30
    coordinate big_results
    coordinate per_worker_values
    coordinate begin 10
    coordinate attach 10
    await "the queue to be over" queue_is 30 10
    tell_broker tasks
}
queue_is() { [ 0 = "$(query "SELECT count(*) FROM task_queue WHERE job = '$job' AND taken <> ended")" ]; }
story_tasks_errors() {
    worker_options=(2 2)
    with_workers bad_tasks
}
bad_tasks() {
    coordinate error_in_join
    coordinate cancelled_is_not_reported
    coordinate another_value
    coordinate unknown_function
    : >"$TASKS_LOG"
    coordinate_behind run 20 die # two of them end their worker
    await "the end of tasks that end their workers" workers_go_on
    coordinator_ends
}
workers_go_on() { workers_again && coordinator_is_gone; }

story_silent() { # a task that says nothing is named
    TASKS_LOG=$dir/attempts-$job && export TASKS_LOG
    : >"$TASKS_LOG"
    worker_start 0
    coordinate_behind silent
    await "its name, or its next attempt" silent_is_named
    kill_child "$coordinator" "the coordinator"
    workers_stop
}
silent_is_named() { happened stuck || attempts_at_least 2; }

supervised_beyond() {
    kill -0 "$supervisor" 2>/dev/null || fail "muster run has ended: $(tail -n 5 "$dir/run-$job.log")"
    committed_beyond "$1"
}
rank_of_run() { query "SELECT pid FROM node WHERE job = '$job' AND rank = 1 AND state IN ('joined', 'restored')"; }
story_supervised() { # a rank is killed: its supervisor says so, the others end, all begin again
    local before

    mkdir -p "$dir/runtime"
    XDG_RUNTIME_DIR="$dir/runtime" TRAINER_GROUP=$group-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" \
        "$muster" run -n 2 --job "$job" --broker "$broker" --max-failures -1 --backoff-ms 50 -- \
        "$trainer" --sharded 1 --step-ms 4 --save-every 20 --steps 100000000 --until-file "$dir/until-$job" </dev/null \
        >"$dir/run-$job.log" 2>&1 &
    supervisor=$!
    started+=("$supervisor")
    await "a checkpoint" supervised_beyond 0
    kill -KILL "$(rank_of_run)"
    await "the loss" happened 'node lost'
    before=$(newest)
    await "a checkpoint after it" supervised_beyond "$before"
    touch "$dir/until-$job"
    await "the end of muster run" not is_ours "$supervisor"
    wait "$supervisor" || fail "muster run: exit code $?: $(tail -n 5 "$dir/run-$job.log")"
    not grep -q 'weights=WRONG' "$dir/run-$job.log" || fail "a rank's weights are wrong"
}

story_restarted() { # a process comes for a rank that had finished early: all begin again
    options=(--say-every 1)
    ranks_start 2 --steps 1000000 --early-rank 1 --early-steps 10
    rank_ends 1 0
    launch=$((launch + 1))
    rank_start 1 --steps 20
    launch=$((launch - 1))
    codes_are 1 0
    await "the word of its restart" came_back
    launch=$((launch + 1))
    rank_start 0 --steps 20
    saved=0
    all_finished 20
}

# Did the broker not hear that it left, then it was lost when the next life came.
came_back() { happened 'rank restarted' || happened 'node lost'; }

story_join_failed() { # a rank that never comes
    options=(--join-ms 1500)
    world=2 launch=$((launch + 1)) pids=()
    rank_start 0
    codes_are 1 0
    await "the word of it" joining_is_over
    options=()
    goes_on 2
}

# The rank gives up by itself, should the broker have died with the word of it.
joining_is_over() { happened 'join failed' || happened 'generation ended'; }

story_observer() { # an evaluator dies, the job goes on
    local first

    options=(--say-every 1)
    ranks_start 2 --steps 1000000 --until-file "$dir/until-$job"
    await "the ranks to start" all_step
    first=${pids[0]} launch=evaluator
    rank_start 0 --steps 1000000 --evaluator-rank 0 --step-ms 50
    await "the evaluator" rank_said 0 '^at step'
    kill_child "${pids[0]}" "the evaluator"
    pids[0]=$first launch=1
    await "its loss" happened "observer failed"
    order_save 0
    await "a checkpoint without it" committed_beyond 0
    : >"$dir/until-$job"
    codes_are 0
    sums_right
}

story_past() { # a rank is frozen so long that it goes on by itself; then comes the decision for a step that it is beyond
    local frozen held pid

    options=(--say-every 1)
    ranks_start 2 --steps 1000000 --until-file "$dir/until-$job"
    await "the ranks to start" all_step
    kill -STOP "${pids[0]}" # its report is missing
    "$muster" save --broker "$broker" --job "$job" --timeout 20 >"$dir/save.log" 2>&1 &
    started+=("$!")
    await "the round" is_freezing
    await "rank 1 to stand" stands 1
    pid=$(cat "$dir/broker.pid")
    kill -STOP "$pid"
    kill -CONT "${pids[0]}" # it comes while the broker stands still
    frozen=$(wc -l <"$(log 1)")
    await "rank 1 to go on" steps_said 1 "$frozen"
    kill -CONT "$pid"
    order_save 0
    await "a checkpoint" committed_beyond 0
    : >"$dir/until-$job"
    codes_are 0
    goes_on 2
}
# stands RANK - it says no step for longer than 20 of them take
stands() {
    local said since

    said=$(wc -l <"$(log "$1")") since=$(now_ms)
    await "100 ms" passed_ms "$since" 100
    [ "$(wc -l <"$(log "$1")")" = "$said" ]
}
steps_said() { [ "$(wc -l <"$(log "$1")")" -gt $(($2 + 5)) ]; }
is_freezing() { [ 0 != "$(query "SELECT count(*) FROM round WHERE job = '$job' AND state <> 'committed'")" ]; }

story_again() { # the broker is killed, and killed again while it starts
    options=(--say-every 1)
    ranks_start 2 --steps 1000000 --until-file "$dir/until-$job"
    await "the ranks to start" all_step
    mv "$order" "$dir/next" # for the next start
    kill -KILL "$(cat "$dir/broker.pid")"
    await "its next start" not test -e "$dir/next"
    order_save 0
    await "a checkpoint" committed_beyond 0
    : >"$dir/until-$job"
    codes_are 0
    goes_on 2
}

story_thawed() { # the broker dies when a save is due: the rank skips it and withdraws its request, and the next broker hears so
    local said

    options=(--say-every 1)
    ranks_start 1 --steps 1000000 --save-every 10 --until-file "$dir/until-$job"
    await "the rank to start" rank_said 0 '^at step'
    mv "$order" "$dir/next" # for the next start
    give_order "stop core_before:SAVE_AT"
    await "the broker to stand" broker_stands
    said=$(wc -l <"$(log 0)") # it has asked for its save, so it stands
    await "the rank to go on" steps_said 0 "$said"
    kill -KILL "$(cat "$dir/broker.pid")"
    await "its next start" not test -e "$dir/next"
    order_save 0
    await "a checkpoint" committed_beyond 0
    : >"$dir/until-$job"
    codes_are 0
    goes_on 1
}
broker_stands() { [[ $(<"/proc/$(cat "$dir/broker.pid")/stat") == *') T '* ]]; }

story_asleep() { # a rank stands still behind its HELLO: the journal goes to it alone, from the first event on
    local been=$(kills) since

    options=()
    ranks_start 1 --steps 10
    codes_are 0
    await "the end of a launch" happened 'generation ended'
    mv "$order" "$dir/later"
    give_order "stop core_after:HELLO"
    ranks_start 1 --steps 20
    await "the broker to stand" broker_stands
    kill -STOP "${pids[0]}"
    mv "$dir/later" "$order"
    kill -CONT "$(cat "$dir/broker.pid")"
    since=$(now_ms)
    await "its events, told again and again" killed_or_told "$been" "$since"
    kill -CONT "${pids[0]}"
    saved=0
    all_finished 20
}
killed_or_told() { [ "$(kills)" -gt "$1" ] || passed_ms "$2" 2500; } # it is lost after 5 s

story_stuck() { # a step of more than a minute
    local patience=200

    options=(--say-every 1)
    ranks_start 2 --steps 30 --slow-rank 1 --slow-step 20 --slow-ms 62000
    await "the word that a rank is stuck" stuck_or_over # a broker that was restarted counts its minute again
    saved=0
    all_finished 30
}

stuck_or_over() { happened stuck || rank_is_gone 1; }

# --- at each point

# story_lane STORY - takes orders from stdin: "trace FILE", or a point at which the broker is to die while it is told.
# "deaf_STORY": nobody hears a publication, so that whoever needs to know asks the broker.
story_lane() {
    local word point reached=0 missed=0 turn=0 before try story=${1#deaf_}

    [ "$story" = "$1" ] || export MUSTER_TEST_PUB_DROP=1
    keeper_start
    while read -r word point; do
        for try in 1 2 3; do
            turn=$((turn + 1)) job=$1-$turn launch=0 before=$(kills)
            case $story in again | thawed) before=$((before + 1)) ;; esac # its own
            give_order "$word $point"
            "story_$story"
            rm -f "$order"
            [ "$word" = kill ] && [ "$(kills)" -eq "$before" ] || break
        done
        [ "$word" = kill ] || continue
        invariants
        if [ "$(kills)" -gt "$before" ]; then
            reached=$((reached + 1))
        else
            point_missed "$point" "in the story $1 before, and now not in 3 tellings"
        fi
    done
    crash_lane_ends
}

# story_points STORY FILE - the points that it comes by.
story_points() {
    trace_story "$2" "the story $1" story_lane "$1"
    sort -u "$2.trace" >"$2"
}

# --- who is killed where: crash_points.txt

points_of() { awk -v story="$1" '!/^#/ && $2 == story { print "kill " $1 }' "$crash_points_list"; }

# points_refused FILE - what is wrong with the lines of such a list: above all a point that is never come by for no reason,
# or for one that is not of its kind.
points_refused() {
    awk '/^# [a-z]+ [^ ]+ - [^ ]/ { of[$2] = "^" $3 "$" }
        /^#/ { next }
        $2 == "never" && NF == 2 { print $1 ": never, and no reason is told" }
        $2 == "never" && NF > 2 && (NF > 3 || !($3 in of)) { print $1 ": never, for a reason that is not told at the head" }
        $2 == "never" && $3 in of && $1 !~ of[$3] { print $1 ": never, and " $3 " is no reason for that" }
        $2 == "never" { told[$3] = 1 }
        $2 != "never" && NF != 2 { print $1 ": one point, one story" }
        END { for (reason in of) if (!(reason in told)) print reason ": a reason, and no point has it" }' "$1"
}

# story_lanes_start LANES STORY... - the points of each story, dealt to so many lanes; six of all at once.
story_lanes_start() {
    local lane lanes_each=$1 story ended=0

    shift
    for story; do
        for ((lane = 0; lane < lanes_each; lane++)); do
            points_of "$story" | share_of "$lane" "$lanes_each" >"$dir/$story.$lane"
            [ -s "$dir/$story.$lane" ] || continue
            lane_start "$dir/$story.$lane" story_lane "$story" <"$dir/$story.$lane"
            [ $((${#lanes[@]} - ended)) -lt 6 ] || { wait -n || true; ended=$((ended + 1)); }
        done
    done
}
