#!/bin/bash
# Save policies that the broker decides, through managers of several ranks: continuous with a minimum interval, an overhead
# ceiling, Young and Daly's interval from the job's own cost and interruptions, and together with steps that are named. Each
# is the same step on every rank, and its times are in the broker's rows.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

# earlier SED - the same of all steps but the job's last. That one may be saved by a rank that is behind: the others have
# finished then, and are asked no more.
declare -A steps
earlier() { echo "/^[a-z]* $((${steps[$job]} - 1))\( \|\$\)/d; $1"; }
steps_listed() { sed -n 's/^all://p' "$(log "$1")" | xargs | sed "s/ $((${steps[$job]} - 1))\$//"; }

# agreed - every rank answered should_save alike, saved the same steps, and lists them; sets $said to them.
agreed() {
    same_on_all "answers of should_save" "$(earlier 's/^should //p')"
    same_on_all "steps saved" "$(earlier 's/^saved //p')"
}

# saves CAUSE - how many of the job's saves have that cause.
saves() { query "SELECT count(*) FROM checkpoint WHERE job = '$job' AND cause = '$1'"; }

# launch JOB RANKS STEPS - with the job's own policies, beside the others.
declare -A rules=(
    [both]='--ask 1 --given 2,5 --period-ms 300 --skew-ms 15' # any-of: steps and time
    [spaced]='--ask 1 --continuous-ms 250'
    [continuous]='--continuous-ms 0 --behind 1 --save-ms 150'
    [overhead]='--ask 1 --overhead-ppm 200000 --save-ms 100' # a fifth of the time
    [held]='--sharded 1 --overhead-ppm 100000 --skew-ms 600' # rank 0 stands at the save step until rank 1 is there
    [first]='--first 1 --fail-rank 0 --fail-step 0' # whose save of the first step fails
    [daly]='--young-daly 1'
    [daly_behind]='--young-daly 1 --behind 1 --save-ms 1500'
    [behind]='--overhead-ppm 20000 --behind 1 --save-ms 900' # which stops training for the snapshot alone
)
launch() {
    job=$1
    steps[$job]=$3
    read -ra options <<<"${rules[$job]} --step-ms 40"
    ranks_start "$2" --steps "$3"
    keep
}

broker_start # which hears of steps once a second
launch both 3 90
launch spaced 2 120
launch continuous 2 90
launch overhead 2 150
launch held 2 12
launch first 2 90
launch daly 2 60
launch daly_behind 2 100
launch behind 2 120

recall both
ranks_end 0
agreed
before=$said
says " $said " ' 2 ' ' 5 '
listed "$said"
holds "saves by time" "$(saves period)" -ge 1

recall daly # one is saved, to learn what it costs
ranks_end 0
same_on_all "steps saved" "$(earlier 's/^saved //p')"
same "saves of a job that is interrupted once a day" "$(wc -w <<<"$said")" 1

launch both 3 160
launch daly 2 100

recall spaced
ranks_end 0
agreed
listed "$said"
holds "saves of job $job" "$(saves period)" -ge 2
same "saves that came sooner than 250 ms after the one before" "$(gaps 'b.opened_unix_ms - a.decided_unix_ms >= 249')" 0

recall continuous
ranks_end 0
same_on_all "steps saved" "$(earlier 's/^saved //p')"
listed "$said"
holds "saves of job $job" "$(saves period)" -ge 2
same "saves that came before the one before was done" "$(gaps 'b.opened_unix_ms >= a.ended_unix_ms')" 0

recall behind
ranks_end 0
same_on_all "steps saved" "$(earlier 's/^saved //p')"
holds "saves of job $job" "$(saves period)" -ge 2
same "saves of job $job that came before the one before was done" "$(gaps 'b.opened_unix_ms >= a.ended_unix_ms')" 0
holds "ms that it stood still for its saves" "$(query "SELECT sum(blocked_ms + waited_ms) FROM checkpoint WHERE job = '$job'")" -lt 500

recall overhead
ranks_end 0
agreed
listed "$said"
holds "saves of job $job" "$(saves period)" -ge 2
same "saves that came sooner than 5 times the cost of the cheapest" "$(gaps 'b.opened_unix_ms - a.decided_unix_ms >=
    5 * (SELECT min(blocked_ms) FROM checkpoint WHERE job = a.job AND round <= a.round) - 1')" 0

recall held # the writes take no time
ranks_end 0
same_on_all "steps saved" "$(earlier 's/^saved //p')"
holds "saves of job $job" "$(saves period)" -ge 1
holds "ms that training stood still for its saves, in their rows" "$(query "SELECT min(blocked_ms) FROM checkpoint WHERE job = '$job' AND state = 'committed'")" -ge 500
read -r stood all longest <<<"$(sed -n 's/^stood //p' "$(log 0)")"
holds "ms of $all that rank 0 stood still, the longest time $longest" "$stood" -le $((all / 10 + 2 * longest))

recall first # one saves it later, and only once
ranks_end 0
same_on_all "steps saved" "$(earlier 's/^saved //p')"
same "saves of a job whose first save failed" "$(wc -w <<<"$said")" 1
listed "$said"

recall daly_behind # its cost is not known until it is written
ranks_end 0
same_on_all "steps saved" "$(earlier 's/^saved //p')"
same "saves behind the training of a job that is interrupted once a day" "$(saves period)" 1

recall both
ranks_end 0
agreed
listed "$before $said"

recall daly
ranks_end 0
same "saves of its next launch" "$(steps_saved 0)" ''
broker_kill # 20,000 launches that did not finish: one interruption every four seconds
"$sql" --write "$db" "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO generation (job, generation, state, world_size, layout, checkpoint_dir, resume_checkpoint, resume_step, resume_ready,
        fallback, end_status, opened_unix_ms, started_unix_ms, ended_unix_ms)
    SELECT 'daly', i, 'ended', 2, 'replicated', '', 0, 0, 1, 0, 1, 1, 1, 2 FROM n"
"$sql" --write "$db" "UPDATE job SET generation = 20000 WHERE job = 'daly'"
broker_start
launch daly 2 250
recall daly
ranks_end 0
same_on_all "steps saved" "$(earlier 's/^saved //p')"
holds "saves of a job that is interrupted every four seconds" "$(wc -w <<<"$said")" -ge 2
"$sql" --write "$db" "DELETE FROM generation WHERE job = 'daly' AND generation BETWEEN 3 AND 20000"

finish "given steps and a period together; continuous with 250 ms between saves, and right behind the save before" \
    "saves take at most a fifth of the time, and a tenth with the wait for the other rank; Young and Daly's interval falls from minutes to less than a second with the interruptions" \
    "a first save that fails is made later" \
    "every rank answers alike, saves the same steps and lists them"
