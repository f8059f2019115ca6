#!/bin/bash
# A real Slurm, one machine: what people and scripts send by hand. scancel --signal to the steps, to the batch shell (-b),
# to both (-f); SIGTERM to srun, which kills the ranks at once; scontrol requeue; `muster run` inside srun, and srun under
# `muster run --launcher`. All at once, each on a node of its own.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_slurm.sh"
slurm_nodes=7

listen="ipc://$dir/broker.sock"
slurm_start
broker_start

restart='code=$?; [ $code = 42 ] && exit 75; exit $code' # the restart code as Slurm has it: RequeueExit

submit steps <<END
srun "\${train[@]}" --usr1 1; $restart
END
# the batch shell alone is told, and leaves a notice file
submit shell <<'END'
export MUSTER_NOTICE_SOURCES="file:/run/shell.notice"
trap 'echo "terminate +20 the batch script was told" >/run/shell.notice' TERM
srun "${train[@]}" & srun=$!
wait $srun; wait $srun; code=$?; rm -f /run/shell.notice; [ $code = 42 ] && exit 75; exit $code
END
# the batch shell, srun, which passes it on, and the ranks: each rank hears it twice
submit full <<'END'
trap : USR1
srun "${train[@]}" --usr1 1 & srun=$!
wait $srun; wait $srun; code=$?; [ $code = 42 ] && exit 75; exit $code
END
submit killed <<'END'
srun "${train[@]}" --save-every 10 & srun=$!
[ -n "$SLURM_RESTART_COUNT" ] || echo $srun >/run/killed.srun
wait $srun; code=$?; echo "srun ended with $code"; [ $code -ge 128 ] && exit 75; exit $code
END
submit requeued <<END
srun "\${train[@]}"; $restart
END
# every process of the step gets the signal: the supervisor, which passes it on, and the rank
submit supervised <<END
srun '$muster' run -- "\${train[@]}" | sed -u 's/^\[[01]\] //'
code=\${PIPESTATUS[0]}; [ \$code = 42 ] && exit 75; exit \$code
END
# the batch job goes on, and srun is started in it again
submit launched <<END
life='begun="$dir/launched.\$SLURM_PROCID.begun"
if [ -e "\$begun" ]; then
    until [ -e "$dir/launched.go" ]; do sleep 0.1; done
    TRAINER_GROUP+=-again
fi
touch "\$begun"
exec "\$@" --steps "\$(cat "$dir/launched.steps")"'
'$muster' run --launcher -- srun --kill-on-bad-exit=0 bash -c "\$life" - "\${train[@]}"
echo "muster run ended with \$?"
END

for name in steps shell full killed requeued supervised launched; do
    await "training of $name" trains "$name"
done
inside scancel -s USR1 "${id[steps]}"
inside scancel -s TERM -b "${id[shell]}"
inside scancel -s USR1 -f "${id[full]}"
inside scontrol requeue "${id[requeued]}"
inside scancel -s TERM "${id[supervised]}" "${id[launched]}"

one_notice_a_rank() {
    same "notices of each rank of $1" "$(query "SELECT max(n) FROM (SELECT count(*) n FROM notice
        WHERE job = 'slurm-${id[$1]}' GROUP BY incarnation)")" 1
}
for name in steps shell full requeued supervised; do
    first_lives_saved "$name"
    same_why
    case $name in
    steps | full) says "$story" SIGUSR1 "step $saved" ;;
    shell)
        says "$story" 'the batch script was told' "step $saved"
        same "signals that ranks of shell were sent" "$(notices shell "source = 'signal'")" 0
        ;;
    *) says "$story" SIGTERM 'Slurm gives 30 s' "step $saved" ;;
    esac
    one_notice_a_rank "$name"
    second_lives_finish "$name"
done
says "$(cat "$dir/supervised.log")" 'signal 15 \(Terminated\) forwarded to 1 rank'

first_lives_saved launched
same_why
says "$story" SIGTERM 'Slurm gives 30 s' "step $saved"
one_notice_a_rank launched
echo $((saved + 30)) >"$dir/launched.steps"
touch "$dir/launched.go"
await "the end of launched" both_ended launched 4
for rank in 0 1; do
    says "$(grep "^trainer: rank=$rank " "$dir/launched.log" | tail -n 1)" \
        "resumed=$saved computed=30 done=$((saved + 30)) " 'weights=right' 'status=MUSTER_OK'
done
await "Slurm's word on launched" job_is launched COMPLETED
same "restarts of launched" "$(restarts launched)" 0
says "$(cat "$dir/launched.log")" '2 launches, 1 preemption, 0 failures' 'muster run ended with 0'

# SIGTERM to srun: the ranks are killed without a word, and go on from the newest save of their policy
job=slurm-${id[killed]} checkpoints=$dir/checkpoints-killed
has_saved() { [ -n "$(committed)" ]; }
await "a checkpoint of killed" has_saved
inside sh -c 'kill -TERM $(cat /run/killed.srun)'
await "the end of srun" grep -Eq '^srun ended with (137|143)$' "$dir/killed.log"
same "ranks of killed that could say something" "$(ended_line killed)" 0
await "that muster knows of it" eval '[ -n "$(query "SELECT 1 FROM event WHERE job = '"'$job'"' AND kind = '"'node lost'"'")" ]'
saved=$(committed)
saved=${saved##* }
committed_whole "$saved"
echo $((saved + 30)) >"$dir/killed.steps"
await "killed to be started again" is_started_again killed
await "the end of killed" both_ended killed 2
for rank in 0 1; do
    says "$(grep "^trainer: rank=$rank " "$dir/killed.log" | tail -n 1)" \
        "resumed=$saved computed=30 done=$((saved + 30)) " 'weights=right' 'status=MUSTER_OK'
done

finish "Slurm $(inside slurmd -V): scancel --signal to steps, with -b and with -f, scontrol requeue, muster run inside srun and around it: \
one notice a rank, saved at once, resumed there and finished" \
    "SIGTERM to srun kills the ranks at once; they resume from the newest save of their policy"
