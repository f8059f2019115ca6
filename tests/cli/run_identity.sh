# `muster run`: what the ranks are told, alone and under a launcher.
. "${BASH_SOURCE%/*}/lib_run.sh"
show='echo "$MUSTER_JOB $MUSTER_RANK/$MUSTER_WORLD_SIZE ${MUSTER_LOCAL_RANK--}/${MUSTER_LOCAL_SIZE--}" \
    "$MUSTER_RESTART_COUNT $MUSTER_RESTART_CODE ${MUSTER_BROKER-no broker}"'

while IFS='|' read -r environment arguments want; do
    # shellcheck disable=SC2086
    env $environment "$MUSTER" run $arguments -- bash -c "$show" >"$dir/out" 2>"$dir/err"
    code=$?
    expect_code 0 "$environment / $arguments"
    [ "$(sort "$dir/out" | tr '\n' ';')" = "$want" ] || fail "$environment / $arguments: $(cat "$dir/out")"
done <<'TABLE'
A=b||[0] bash 0/1 0/1 0 42 no broker;
A=b|-n 2 --job words --broker tcp://h:1|[0] words 0/2 0/2 0 42 tcp://h:1;[1] words 1/2 1/2 0 42 tcp://h:1;
MUSTER_JOB=mine MUSTER_BROKER=tcp://h:2||[0] mine 0/1 0/1 0 42 tcp://h:2;
MUSTER_JOB=mine MUSTER_RESTART_CODE=75|-j yours|[0] yours 0/1 0/1 0 75 no broker;
RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=5||[3] bash 3/4 1/2 5 42 no broker;
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=7||[1] slurm-7 1/2 -/- 0 42 no broker;
SLURM_PROCID=0 SLURM_NTASKS=2|-n 2 -j s|[0] s 0/2 0/2 0 42 no broker;[1] s 1/2 1/2 0 42 no broker;
MUSTER_RANK=1 MUSTER_WORLD_SIZE=3|-n 1|[1] bash 1/3 -/- 0 42 no broker;
TABLE

RANK=1 WORLD_SIZE=2 run -n 4 -- true
expect_code 2 "-n under a launcher"
expect err "-n 4 contradicts plain, which made this process rank 1 of 2"
OMPI_COMM_WORLD_RANK=1 run -- true
expect_code 2 "half a launcher"
expect err "openmpi: OMPI_COMM_WORLD_SIZE is missing"

# What torchrun would set, where it is not set; a free port, another one in each launch.
torch='echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+port}"'
run -n 2 -- bash -c "$torch"
expect_code 0 "torchrun's variables"
[ "$(sort "$dir/out" | tr '\n' ';')" = "[0] 0/2 0/2 127.0.0.1 port;[1] 1/2 1/2 127.0.0.1 port;" ] ||
    fail "torchrun's variables: $(cat "$dir/out")"
run -n 2 -- bash -c 'echo "$MASTER_PORT"; [ "$MUSTER_RESTART_COUNT" -gt 0 ] || exit 1'
expect_code 0 "two launches"
[ "$(sed 's/.* //' "$dir/out" | sort -u | wc -l)" = 2 ] || fail "ports of two launches of two ranks: $(cat "$dir/out")"
MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 run -n 2 -- bash -c 'echo "$MASTER_ADDR:$MASTER_PORT"'
[ "$(sed 's/.* //' "$dir/out" | sort -u)" = 10.0.0.1:29500 ] || fail "what was set before: $(cat "$dir/out")"
SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_ID=0 run -- bash -c "$torch"
expect out "[1] / / "

# Paths with spaces, in the command, its arguments and the logs.
mkdir "$dir/a folder"
printf '#!/bin/sh\nprintf "%%s;" "$@"\n' >"$dir/a folder/a program"
chmod +x "$dir/a folder/a program"
run --output "$dir/a folder/the logs" "$dir/a folder/a program" "two words" "" "-n" 'quo"te'
expect_code 0 "spaces"
expect out '[0] two words;;-n;quo"te;'
expect err "job a-program"
[ "$(cat "$dir/a folder/the logs/0.log")" = 'two words;;-n;quo"te;' ] || fail "the log"

# A command whose name begins as no job's may.
cp "$dir/a folder/a program" "$dir/.=program"
run "$dir/.=program" x
expect_code 0 "a hidden program"
expect err "job _-program"

# The ranks read nothing of our stdin, and hear what our parent had blocked or ignored.
echo input | run -- bash -c 'read -r line; echo "read: ${line-}."'
expect out "[0] read: ."
(trap '' TERM CHLD; exec "$MUSTER" run -- bash -c 'trap "exit 42" TERM; echo up; while :; do sleep 0.05; done' \
    >"$dir/out" 2>"$dir/err") &
pid=$!
started="$started $pid"
await "the rank" grep -q up "$dir/out"
kill -TERM $pid
ended
expect_code 42 "SIGTERM that the parent ignored"
