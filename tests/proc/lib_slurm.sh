# lib_slurm.sh - sourced: Slurm with some nodes, all of them this machine, inside lib_chroot.sh's Debian. Nothing of it is outside.
# Each scenario has a node of its own, so that all of them can wait for Slurm's clock at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib_chroot.sh"

slurm_nodes=12
kill_wait=8 # seconds from SIGTERM to SIGKILL
patience=150 # Slurm's clock counts in minutes

slurm_write_conf() {
    local name

    name=$(hostname)
    cat <<CONF
ClusterName=muster
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool.%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.%n.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
ReturnToService=2
KillWait=$kill_wait
RequeueExit=75
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
SchedulerParameters=sched_interval=5,bf_interval=5
NodeName=n[1-$slurm_nodes] NodeHostname=$name NodeAddr=127.0.0.1 Port=[17001-$((17000 + slurm_nodes))] CPUs=2 RealMemory=4000
PartitionName=plain Nodes=ALL Default=YES PriorityTier=1 PreemptMode=OFF
PartitionName=graceful Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=15
PartitionName=abrupt Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=0
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF
CONF
}

slurm_start() {
    local node

    chroot_enter
    inside mkdir -p /run/slurm/state /run/munge
    inside chown munge: /run/munge
    slurm_write_conf | inside tee /run/slurm/slurm.conf >/dev/null
    echo CgroupPlugin=cgroup/v1 | inside tee /run/slurm/cgroup.conf >/dev/null
    export SLURM_CONF=/run/slurm/slurm.conf
    inside setpriv --reuid munge --regid munge --init-groups munged >"$dir/munged.log" 2>&1
    inside slurmctld -c >"$dir/slurmctld.log" 2>&1
    for ((node = 1; node <= slurm_nodes; node++)); do
        inside slurmd -N "n$node" >"$dir/slurmd.log" 2>&1
    done
    await "Slurm's nodes" nodes_are_idle
}

nodes_are_idle() { [ "$(inside sinfo -h -p plain -t idle -o %D)" = "$slurm_nodes" ]; }

# --- jobs

declare -A id # Slurm's number of a job; to muster it is slurm-NUMBER, also after it was requeued
next_node=1

# submit NAME [SBATCH-OPTIONS...] - a job of two ranks whose batch script comes on stdin, on the node that is free next.
# The script has $train: the trainer and its options; TRAINER_GROUP is set.
submit() {
    local name=$1

    shift
    {
        cat <<SCRIPT
#!/bin/bash
export MUSTER_BROKER='$broker' MUSTER_CHECKPOINT_DIR='$dir/checkpoints-$name' MUSTER_RUNTIME_DIR=/run/muster-$name
export TRAINER_GROUP=slurm-\$SLURM_JOB_ID-\${SLURM_RESTART_COUNT:-0}
train=('$trainer' --step-ms 50 --barrier 1 --say-every 10 --steps "\$(cat '$dir/$name.steps')")
SCRIPT
        cat
    } >"$dir/$name.sh"
    echo 1000000 >"$dir/$name.steps"
    id[$name]=$(inside sbatch --parsable -w "n$next_node" -n 2 -J "$name" -o "$dir/$name.log" --open-mode=append \
        "$@" "$dir/$name.sh")
    node[$name]=n$next_node
    next_node=$((next_node + 1))
}
declare -A node

# preempt NAME - a job that goes before, on the same node, until `let_go NAME`.
preempt() {
    id[$1-high]=$(inside sbatch --parsable -w "${node[$1]}" -n 2 -p high -J "$1-high" -o /dev/null --wrap 'sleep 600')
}
let_go() { inside scancel "${id[$1-high]}"; }

trains() { [ "$(grep -c 'at step 20$' "$dir/$1.log")" -ge 2 ]; } # both ranks
job_state() { inside squeue -h -t all -j "${id[$1]}" -o '%T'; }
job_is() { [ "$(job_state "$1")" = "$2" ]; }
restarts() { inside scontrol -o show job "${id[$1]}" | sed -n 's/.* Restarts=\([0-9]*\) .*/\1/p'; }
ended_line() { grep -c '^trainer: ' "$dir/$1.log" || true; }
both_ended() { [ "$(ended_line "$1")" -ge "$2" ]; }

# saved_step NAME - what the first lives of both ranks ended with, and that muster committed it.
first_lives_saved() {
    local rank

    job=slurm-${id[$1]} checkpoints=$dir/checkpoints-$1
    await "both ranks of $1" both_ended "$1" 2
    saved=$(grep -m 1 '^trainer: rank=0 ' "$dir/$1.log" | sed 's/.* done=\([0-9]*\) .*/\1/')
    for rank in 0 1; do
        says "$(grep -m 1 "^trainer: rank=$rank " "$dir/$1.log")" \
            'world=2 resumed=0 ' 'weights=right' 'status=MUSTER_PREEMPTED'
    done
    holds "steps of $1 that were saved" "$saved" -ge 20
    committed_whole "$saved"
}

# A requeued job waits for 2 minutes, unless it is told not to. Told in the second in which its first life ended it fails:
# Slurm counts credentials by seconds, and those of that second are revoked.
declare -A idle_ms
is_started_again() {
    inside squeue -h -t all -j "${id[$1]}" -o '%T %r' >"$dir/$1.state.log" # a failed test shows it
    case $(cat "$dir/$1.state.log") in
    PENDING\ BeginTime)
        [ "$(inside sinfo -h -p plain -n "${node[$1]}" -o %T)" = idle ] || return
        : "${idle_ms[$1]:=$(now_ms)}"
        passed_ms "${idle_ms[$1]}" 2000 && inside scontrol update "JobId=${id[$1]}" StartTime=now
        false
        ;;
    RUNNING* | COMPLETED*) ;;
    *) false ;;
    esac
}

# second_lives_finish NAME - it is requeued once; both ranks resume where they saved and do the rest.
second_lives_finish() {
    local steps=$((saved + 30)) rank

    echo "$steps" >"$dir/$1.steps"
    await "$1 to be started again" is_started_again "$1"
    await "the end of $1" both_ended "$1" 4
    for rank in 0 1; do
        says "$(grep "^trainer: rank=$rank " "$dir/$1.log" | tail -n 1)" \
            "resumed=$saved computed=30 done=$steps " 'weights=right' 'status=MUSTER_OK'
    done
    await "Slurm's word on $1" job_is "$1" COMPLETED
    same "restarts of $1" "$(restarts "$1")" 1
}

# notices NAME SQL-CONDITION - how many the broker heard of this job that are so.
notices() { query "SELECT count(*) FROM notice WHERE job = 'slurm-${id[$1]}' AND ($2)"; }
