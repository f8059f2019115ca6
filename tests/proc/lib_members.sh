# lib_members.sh - prog_member's nodes beside tasks, for the scripts about them; sourced after lib_tasks.sh.
member=$TESTS_DIR/proc/prog_member
declare -A members # what -> pid

member_start() { # WHAT
    MUSTER_JOB=$job MUSTER_BROKER=$broker MUSTER_RANK=0 MUSTER_CHECKPOINT_DIR=$dir/checkpoints "$member" "$1" \
        </dev/null >>"$dir/member-$1.log" 2>&1 &
    members[$1]=$!
    started+=("$!")
}
member_is_gone() { not is_ours "${members[$1]}"; }
member_killed() { kill_child "${members[$1]}" "the $1"; }
# member_ended WHAT CODE - by itself, or by what it was sent.
member_ended() {
    local code=0

    await "the end of the $1" member_is_gone "$1"
    wait "${members[$1]}" || code=$?
    same "exit code of the $1" "$code" "$2"
}
member_ends() {
    kill -TERM "${members[$1]}"
    member_ended "$1" 0
}
# there_is WHAT ROLE - that process has joined.
there_is() { [ "$(query "SELECT count(*) FROM node WHERE role = '$2' AND pid = ${members[$1]} AND state IN ('joined', 'restored')")" = 1 ]; }
