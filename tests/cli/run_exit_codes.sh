# `muster run`: what each exit code of the ranks leads to.
. "${BASH_SOURCE%/*}/lib_run.sh"

# what · ranks' code in launch 1, 2, ... · options · exit code · launches
while IFS='|' read -r what codes options want launches; do
    rm -f "$dir/launches"
    # shellcheck disable=SC2086
    CODES=$codes run --backoff-ms 1 $options -- bash -c '
        echo x >>"$dir/launches"; set -- $CODES; shift $MUSTER_RESTART_COUNT; exit ${1:-0}'
    expect_code "$want" "$what"
    [ "$(wc -l <"$dir/launches")" = "$launches" ] ||
        fail "$what: $(wc -l <"$dir/launches") launches instead of $launches"
done <<'TABLE'
finished|0||0|1
restart code|42 0||0|2
two preemptions|42 42 0||0|3
do not restart|93 0||93|1
a failure, then fine|1 0||0|2
preemption, failure, fine|42 5 0||0|3
any code is a failure|255 0||0|2
failures up to the limit|1 2 3 0||0|4
failures over the limit|1 2 3 4 0||4|4
no failure allowed|7 0|--max-failures 0|7|1
no preemption allowed|42 0|--max-preemptions 0|42|1
one preemption allowed|42 42 0|--max-preemptions 1|42|2
a preemption is no failure|42 0|--max-failures 0|0|2
another restart code|75 0|--restart-code 75 --max-failures 0|0|2
42 is then a failure|42 0|--restart-code 75 --max-failures 0|42|1
slurm's preset|75 0|--restart-preset slurm --max-failures 0|0|2
kubeflow's preset|143 0|--restart-preset kubeflow --max-failures 0|0|2
the preset signal|143 0|--restart-preset signal --max-failures 0|0|2
no progress, three restarts: this host is being taken away|42 42 42 42 0||42|4
no progress, a failure among them|42 1 42 42 0||1|4
TABLE

# The preset signal: dies of the signal, which a shell shows as 128 + 15 and the kernel as WTERMSIG.
run --restart-preset signal --max-preemptions 0 -- bash -c 'exit 143'
expect_code 143 "the preset signal"
"$MUSTER" run --restart-preset signal -- bash -c 'trap "exit 143" TERM; kill -TERM $PPID; sleep 20 & wait' 2>"$dir/err" &
pid=$!
wait -f $pid
kill -l $? | grep -qx TERM || fail "the preset signal: not ended by SIGTERM"

run --max-failures 0 -- bash -c 'kill -SEGV $$'
expect_code 139 "killed by a signal"
expect err "killed by signal 11"

run --restart-preset gcp --max-failures 0 -- bash -c '[ $MUSTER_RESTART_COUNT = 1 ] || kill -TERM $$'
expect_code 0 "death by SIGTERM is 143, the restart code"

run -- "$dir/no such program"
expect_code 127 "a program that is not there"
expect err "cannot start $dir/no such program: no such program that this user may execute"
same_lines=$(wc -l <"$dir/err")
[ "$same_lines" = 1 ] || fail "a program that is not there takes $same_lines lines: $(cat "$dir/err")"
touch "$dir/plain"
run "$dir/plain"
expect_code 126 "a file that is no program"
expect err "1 launch,"

run -n 4 --max-failures 0 -- bash -c '[ $MUSTER_RANK = 2 ] && { echo "the cause" >&2; exit 9; }; exit 0'
expect_code 9 "one rank of four"
expect err "first error: failed, rank 2 exited with code 9"
expect err "|   the cause"
expect err "1 launch, 0 preemptions, 1 failure; exit code 9"

run -n 4 -- bash -c 'exit $((MUSTER_RESTART_COUNT == 0 ? 42 : 0))'
expect_code 0 "four ranks preempted"
expect err "launch 2: restarting 4 ranks (preempted, restart code 42 from all 4 ranks)"

run -n 3 -- bash -c '[ $MUSTER_RESTART_COUNT = 0 ] && [ $MUSTER_RANK != 1 ] && exit 42; exit 0'
expect_code 0 "two of three ranks preempted"
expect err "launch 2: restarting 3 ranks (preempted, restart code 42 from 2 of 3 ranks)"

# The box holds the last 20 lines, without control characters.
run --max-failures 0 -- bash -c 'for i in {1..30}; do printf "line \e[31m%d\n" $i >&2; done; exit 1'
expect err '|   line  [31m11'
expect err '|   line  [31m30'
! grep -q '^|   line .*m10$' "$dir/err" || fail "more than 20 lines in the box"

while IFS='|' read -r text arguments; do
    # shellcheck disable=SC2086
    run $arguments
    expect_code 2 "wrong command line: $arguments"
    expect err "$text"
done <<'TABLE'
no command was given|
no command was given|-n 2 --
-n must be a number from 1|-n 0 true
-n must be a number from 1|-n two true
--restart-code must be a number from 1 to 255|--restart-code 0 true
"do not restart"|--restart-code 93 true
--restart-preset must be|--restart-preset borg true
not both|--restart-preset gcp --restart-code 3 true
unrecognized option|--nonsense true
--job "a/b" cannot be a job's name|--job a/b true
--job "-a" cannot be a job's name|--job=-a true
cannot make the directory /proc/none/logs: No such file or directory|--output /proc/none/logs true
--nodes 3:2: the first number is the least, the second the most|--nodes 3:2 true
--nodes must be a number from 1|--nodes 0 true
--nodes must be a number from 1|--nodes 2: true
--node-rank is from 0 to 1 with these --nodes|--nodes 1:2 --node-rank 2 true
--node-rank and --host-address need --nodes|--node-rank 0 true
--nodes contradicts --launcher|--nodes 2 --launcher true
TABLE
run --help
expect_code 0 "--help"
expect out "usage: muster run"
