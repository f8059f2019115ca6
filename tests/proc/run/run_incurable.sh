#!/bin/bash
# What the same start would meet again is not restarted, whatever code the program exits with: a missing option, another
# job's directory, one below a file, one without rights. The box says once what all ranks say. What a restart may cure is restarted.
. "$(dirname "$0")/../lib.sh"

as_others='"$0"; [ $? = 0 ] || exit 1' # a program that knows no code 93
running() { # JOB CODE
    job=$1 code=0
    timeout "$hangs_after" "$muster" run -n 4 --job "$job" --broker "$broker" --backoff-ms 1 --max-failures 1 \
        -- sh -c "$as_others" "$EXAMPLES_DIR/minimal" >"$dir/$job.log" 2>&1 || code=$?
    same "exit code of job $job" "$code" "$2"
}
box() { sed -n '/^+---- muster run/,/^+----$/p' "$dir/$job.log"; }
launches() { grep -c ' restarting 4 ranks' "$dir/$job.log" || true; }

broker_start
running optionless 93
same "restarts without a directory" "$(launches)" 0
says "$(box)" 'with MUSTER_E_ARGUMENT the same start would fail again' '^\| ranks 0-3 on ' '^\| MUSTER_E_ARGUMENT:$' '; exit code 93$'
same "times that the box says it" "$(box | grep -c 'nobody says where checkpoints go')" 1

mkdir -p "$dir/other/.muster"
echo theirs >"$dir/other/.muster/JOB"
export MUSTER_CHECKPOINT_DIR=$dir/other
running elsewhere 93
same "restarts in another job's directory" "$(launches)" 0
says "$(box)" 'with MUSTER_E_JOB the same start would fail again' '^\| ranks 0-3 on ' 'belongs to job "theirs"'
same "times that the box says it" "$(box | grep -c 'belongs to job "theirs"')" 1

export MUSTER_CHECKPOINT_DIR=$dir/other/.muster/JOB/no # a part of the path is a file
running misplaced 93
same "restarts below a file" "$(launches)" 0
says "$(box)" 'with MUSTER_E_ARGUMENT the same start would fail again' 'a part of the path is a file'

export MUSTER_CHECKPOINT_DIR=/sys/none # not even root may make it
running without_rights 93
same "restarts without rights" "$(launches)" 0
says "$(box)" 'with MUSTER_E_IO the same start would fail again' 'cannot create the directory /sys/none'

export MUSTER_CHECKPOINT_DIR=/proc/none/yet # a disk that is not mounted yet looks like that
running later 1
same "restarts of what may be there later" "$(launches)" 1
finish "what a restart cannot cure is not restarted; the box says once what four ranks say"
