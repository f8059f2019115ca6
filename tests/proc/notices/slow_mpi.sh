#!/bin/bash
# Real Open MPI and MPICH: what SIGTERM and SIGUSR1 to mpirun become for two ranks, and what they save in that time.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_chroot.sh"

listen="ipc://$dir/broker.sock"
chroot_enter
broker_start
mpi=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_oob_tcp_if_include=lo
    OMPI_MCA_rmaps_base_oversubscribe=1 TMPDIR=/tmp)

supervisor=() # of each rank, or nobody

# mpi_start NAME OPTIONS... - two ranks; mpirun's number inside is in $dir/NAME.pid
mpi_start() {
    job=$1 checkpoints=$dir/checkpoints-$1
    shift
    inside env "${mpi[@]}" MUSTER_JOB="$job" MUSTER_BROKER="$broker" MUSTER_CHECKPOINT_DIR="$checkpoints" \
        TRAINER_GROUP="mpi-$job-$RANDOM" MUSTER_RUNTIME_DIR=/run/muster \
        sh -c 'echo $$ >"$1.pid"; shift; exec "$@"' sh "$dir/$job" \
        "$mpirun" -np 2 ${supervisor[@]+"${supervisor[@]}"} "$trainer" --step-ms 20 --barrier 1 --say-every 10 "$@" </dev/null >>"$dir/$job.log" 2>&1 &
    mpirun_pid=$!
    started+=("$mpirun_pid")
}
trains() { [ "$(grep -c "at step $1\$" "$dir/$job.log")" -ge 2 ]; }
signal() { inside kill "-$1" "$(cat "$dir/$job.pid")"; }
mpirun_is_gone() { not kill -0 "$mpirun_pid"; }
mpirun_ends() { # leaves its exit code in $code
    await "the end of mpirun" mpirun_is_gone
    code=0
    wait "$mpirun_pid" || code=$?
}
not_open() { [ "$(query "SELECT count(*) FROM round WHERE job = '$job' AND state NOT IN ('committed', 'aborted')")" = 0 ]; }
line_of() { grep -E "^(\[$1\] )?trainer: rank=$1 " "$dir/$job.log" | tail -n 1; }

# Identity by the launcher, a checkpoint of both at one step, the restart code, and the rest of it in a second life.
saves_and_resumes() {
    local rank

    mpirun_ends
    same "exit code of $job" "$code" 42
    saved=$(sed -n 's/^\(\[0\] \)\{0,1\}trainer: rank=0 .* done=\([0-9]*\) .*/\2/p' "$dir/$job.log")
    for rank in 0 1; do
        says "$(line_of $rank)" 'world=2 resumed=0 ' weights=right status=MUSTER_PREEMPTED
    done
    committed_whole "$saved"
    mpi_start "$job" --steps $((saved + 20))
    mpirun_ends
    same "exit code of $job's second life" "$code" 0
    for rank in 0 1; do
        says "$(line_of $rank)" "resumed=$saved computed=20 " weights=right status=MUSTER_OK
    done
}

for mpirun in mpirun.openmpi mpirun.mpich; do
    mpi_start "usr1-$mpirun" --steps 1000000 --usr1 1
    await "training under $mpirun" trains 20
    signal USR1 # forwarded as it is; mpirun itself stays
    saves_and_resumes
done

# `muster run` between mpirun and each rank: identity from mpirun, the signal passed on once
supervisor=("$muster" run --)
for mpirun in mpirun.openmpi mpirun.mpich; do
    mpi_start "run-$mpirun" --steps 1000000 --usr1 1
    await "training under $mpirun and muster run" trains 20
    signal USR1
    saves_and_resumes
    same "ranks to which muster run passed it on" "$(grep -c 'signal 10 .* forwarded to 1 rank' "$dir/$job.log")" 2
    same "notices of each rank" "$(query "SELECT max(n) FROM (SELECT count(*) n FROM notice WHERE job = '$job'
        GROUP BY incarnation)")" 1
done
supervisor=()

# SIGTERM to MPICH's mpirun is forwarded once, and nothing follows
mpirun=mpirun.mpich
mpi_start "term-$mpirun" --steps 1000000
await "training under $mpirun" trains 20
signal TERM
mpirun_ends
same_why
says "$story" SIGTERM committed

# Open MPI's: SIGTERM to the ranks, SIGKILL 2 s later. A small state is saved in that time, and the next life has it.
mpirun=mpirun.openmpi
mpi_start "term-$mpirun" --steps 1000000
await "training under $mpirun" trains 20
signal TERM
mpirun_ends
holds "exit code of mpirun after SIGTERM" "$code" -ne 0
same_why
says "$story" SIGTERM 'mpirun gives 2 s' committed
saved=$(committed)
same "checkpoints of $job" "$(wc -w <<<"$saved")" 1
committed_whole "$saved"
mpi_start "$job" --steps $((saved + 20))
mpirun_ends
same "exit code of $job's second life" "$code" 0
for rank in 0 1; do
    says "$(line_of $rank)" "resumed=$saved computed=20 " weights=right status=MUSTER_OK
done

# What takes longer is cut off; it is said, and nothing of it counts.
mpi_start "late-$mpirun" --steps 1000000 --save-fn 1 --save-late-rank 0 --save-late-ms 30000
await "training under $mpirun" trains 20
signal TERM
mpirun_ends
holds "exit code of mpirun after SIGTERM" "$code" -ne 0
await "the end of the round without its writer" not_open
same_why
says "$story" SIGTERM 'mpirun gives 2 s' 'aborted|lost|no checkpoint|deadline'
same "checkpoints of $job" "$(committed)" ""
finish "Open MPI and MPICH: SIGUSR1 to mpirun saves and resumes, also with muster run between; identity from each" \
    "SIGTERM to MPICH's mpirun is one notice; to Open MPI's too, saved at step $saved within mpirun's 2 s; a save that takes longer is lost, and muster why says so"
