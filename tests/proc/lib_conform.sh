# lib_conform.sh - sourced by conform_*.sh after lib.sh: one job of prog_conform under `muster run`, and what must hold
# whatever happened to it: the model's sum is ranks x 8 epochs x 15 steps, and there are so many checkpoints.
conform=$TESTS_DIR/proc/prog_conform
total=$((8 * 15))
seed=${CONFORM_SEED:-$((EPOCHSECONDS % 100000))}
say "CONFORM_SEED=$seed"

# conform JOB RANKS CODE OPTIONS... - a whole job; `run_options` go to muster run.
run_options=()
conform() {
    local ranks=$2 want=$3 code=0

    job=$1
    shift 3
    CONFORM_SEED=$seed CONFORM_GROUP=conform-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" \
        timeout "$hangs_after" "$muster" run -n "$ranks" --job "$job" --broker "${broker:-ipc://$dir/nobody}" \
        ${run_options[@]+"${run_options[@]}"} -- "$conform" "$@" >"$dir/$job.log" 2>&1 || code=$?
    same "exit code of job $job" "$code" "$want"
}

lives() { grep -c "conform: rank=0 life=" "$dir/$job.log"; }

# ends_whole RANKS LIVES CHECKPOINTS - in the last life every rank has the whole sum; the lives follow on each other.
ends_whole() {
    local ranks=$1 lives=$2 life step

    same "lives of job $job" "$(lives)" "$lives"
    same "ranks of job $job that ended with the whole sum" \
        "$(grep -c "conform: rank=[0-9]* life=$((lives - 1)) .* done=$total sum=$((ranks * total)) status=MUSTER_OK" "$dir/$job.log")" "$ranks"
    for ((life = 1; life < lives; life++)); do
        step=$(sed -n "s/.*rank=0 life=$life resumed=\([0-9]*\) .*/\1/p" "$dir/$job.log")
        same "ranks of job $job that resumed at step $step" "$(grep -c "life=$life resumed=$step " "$dir/$job.log")" "$ranks"
        holds "step of the save" "$step" -ge 5
    done
    same "checkpoints of job $job" "$(find "$dir/checkpoints-$job" -mindepth 2 -maxdepth 2 -name manifest.json | wc -l)" "$3"
}
