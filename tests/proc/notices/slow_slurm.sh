#!/bin/bash
# A real Slurm, one machine: what its time limit, --signal, scancel and preemption do to two ranks, what they saved, and
# how the job goes on. All scenarios run at once, each on a node of its own; most of the time is Slurm's minute.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_slurm.sh"

listen="ipc://$dir/broker.sock"
slurm_start
broker_start

restart='code=$?; [ $code = 42 ] && exit 75; exit $code' # the restart code as Slurm has it: RequeueExit

# the end of the time, told 25 s ahead by squeue
submit told -t 1 <<END
export MUSTER_NOTICE_SOURCES=auto,slurm:25
srun "\${train[@]}"; $restart
END
# the same, unasked: SIGTERM at the end, SIGKILL after KillWait
submit limit -t 1 <<'END'
srun "${train[@]}"
END
# --signal to the steps: USR1 is a notice because the program asks for it
submit usr1 -t 1 --signal=USR1@10 <<END
srun "\${train[@]}" --usr1 1; $restart
END
# --signal to the batch shell only, which leaves a notice file
submit batch -t 1 --signal=B:USR1@10 <<END
export MUSTER_NOTICE_SOURCES="file:/run/batch.notice"
trap 'echo "time_limit +20 the batch script says so" >/run/batch.notice' USR1
srun "\${train[@]}" & srun=\$!
wait \$srun; wait \$srun; code=\$?; rm -f /run/batch.notice; [ \$code = 42 ] && exit 75; exit \$code
END
submit cancelled <<'END'
srun "${train[@]}"
END
submit graceful -p graceful <<END
srun "\${train[@]}"; $restart
END
submit abrupt -p abrupt <<END
srun "\${train[@]}"; $restart
END
# send_user_signal: USR1 comes instead of the first SIGTERM
submit usersignal -p graceful --signal=USR1 <<END
srun "\${train[@]}" --usr1 1; $restart
END
# the identity trap: in all ranks of an mpirun Slurm's variables say rank 0
submit mpirun <<END
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_oob_tcp_if_include=lo
mpirun.openmpi --oversubscribe -np 2 "\${train[@]}" --usr1 1 & mpirun=\$!
echo \$mpirun >/run/mpirun.pid
wait \$mpirun; wait \$mpirun; $restart
END

for name in cancelled graceful abrupt usersignal mpirun; do
    await "training of $name" trains "$name"
done
inside scancel "${id[cancelled]}"
for name in graceful abrupt usersignal; do
    preempt "$name"
done
inside sh -c 'kill -USR1 $(cat /run/mpirun.pid)' # forwarded as it is; mpirun stays

first_lives_saved cancelled
await "Slurm's word on cancelled" job_is cancelled CANCELLED
same_why
says "$story" SIGTERM 'Slurm gives 30 s' "step $saved"
# two SIGTERMs within milliseconds are one notice of each rank
same "notices of each rank of cancelled" "$(query "SELECT max(n) FROM (SELECT count(*) n FROM notice
    WHERE job = 'slurm-${id[cancelled]}' GROUP BY incarnation)")" 1

for name in graceful abrupt usersignal; do
    first_lives_saved "$name"
    same_why
    [ "$name" = usersignal ] && signal=SIGUSR1 || signal=SIGTERM
    says "$story" "$signal" "step $saved"
    let_go "$name"
    second_lives_finish "$name"
done

first_lives_saved mpirun
says "$(cat "$dir/mpirun.log")" 'trainer: rank=0 world=2' 'trainer: rank=1 world=2'
second_lives_finish mpirun

first_lives_saved told
same_why
says "$story" "time limit" "the time of Slurm job ${id[told]} ends at" "step $saved"
holds "signals that told was sent" "$(notices told "source = 'signal'")" -eq 0
second_lives_finish told

first_lives_saved limit
await "Slurm's word on limit" job_is limit TIMEOUT
same_why
says "$story" SIGTERM "step $saved"

for name in usr1 batch; do
    first_lives_saved "$name"
    same_why
    [ "$name" = usr1 ] && words=SIGUSR1 || words='the batch script says so'
    says "$story" "$words" "step $saved"
    second_lives_finish "$name"
done

finish "Slurm $(inside slurmd -V): time limit told by squeue and by SIGTERM, --signal to steps and to the batch shell, scancel, \
preemption with and without GraceTime and with send_user_signal, mpirun in sbatch: each saved at once" \
    "requeued by exit code 75 or by Slurm itself, each resumed at the step that it saved and finished"
