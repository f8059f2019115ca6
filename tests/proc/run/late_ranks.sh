#!/bin/bash
# A notice while two of four ranks are still starting. Started by hand, the late ones leave with the others' launch as
# soon as they come. Under `muster run` nobody waits for them: the whole job is back in training within seconds.
# Rules: R3.8.
. "$(dirname "$0")/../lib.sh"

late=3 # seconds

# starts_late - rank_start's way for a rank that has to import a lot first.
starts_late=(bash -c "sleep $late; exec \"\$@\"" late)

broker_start
for job in replicated sharded; do
    options=(--steps 40 --barrier 0)
    [ "$job" = replicated ] || options+=(--sharded 1)
    world=4 launch=$((launch + 1)) pids=()
    for rank in 0 1; do
        rank_start "$rank"
    done
    rank_through=("${starts_late[@]}")
    for rank in 2 3; do
        rank_start "$rank" --exit-policy 1
    done
    rank_through=()
    for rank in 0 1; do
        await "rank $rank to join" rank_said "$rank" '^opened'
    done
    kill -TERM "${pids[1]}"
    began=$(now_ms)
    ranks_end 42
    holds "the late ranks end when they come" $(($(now_ms) - began)) -lt $((1000 * late + 8000))
    for rank in 2 3; do
        says "$(cat "$(log "$rank")")" 'rank . leaves with the restart code 42: rank . came after its launch had ended'
    done
    same "generations" "$(query "SELECT count(*) FROM generation WHERE job = '$job'")" 1
    saved=0
    ranks_start 4
    all_finished 40
done

# noticed_late - the first life: rank 1 is told to end at 1.5 s, ranks 2 and 3 come at 3 s.
cat >"$dir/noticed_late" <<'EOF'
if [ "$MUSTER_RESTART_COUNT" = 0 ]; then
    case $MUSTER_RANK in
    1) (sleep 1.5; kill -TERM $$) & ;;
    [23]) sleep 3 ;;
    esac
fi
exec "$@"
EOF
job=supervised
began=$(now_ms)
code=0
TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" timeout "$hangs_after" "$muster" run -n 4 \
    --job "$job" --broker "$broker" -- bash "$dir/noticed_late" "$trainer" --steps 40 --barrier 0 \
    >"$dir/$job.log" 2>&1 || code=$?
same "exit code of muster run" "$code" 0
holds "the job is back in training within seconds" $(($(now_ms) - began)) -lt 20000
# rank 0 has begun no step either, and may still be on its way out
says "$(cat "$dir/$job.log")" 'ranks( 0| 1)? 2 3 have not begun a step' # whoever of them left first
same "ranks of the second life that did all steps" "$(grep -c 'trainer: .* done=40 ' "$dir/$job.log")" 4
finish "a notice while ranks start: late ranks leave with their launch, and a supervised job is back at once"
