#!/bin/bash
# The page of `muster web` in a browser while a job trains, gets a notice, saves, restarts, and while its broker dies and
# comes back: it follows, without loading itself again. Then in both colour schemes, wide and narrow, and by keyboard alone.
# WEB_SHOTS=DIR keeps pictures for a person to look at.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"
. "$(dirname "$0")/lib_browser.sh"

browser_start
listen=$ipc
broker_start
cat >"$dir/rank" <<'RANK'
exec "$TRAINER" --steps 100000 --step-ms 20 --sharded 1 --barrier 1 --save-every 200 --until-file "$END"
RANK
MUSTER_BROKER=$broker TRAINER=$trainer END=$dir/end TRAINER_GROUP=$group MUSTER_CHECKPOINT_DIR="$dir/ckpt" "$muster" run --job words -n 4 \
    -- bash "$dir/rank" </dev/null >"$dir/run.log" 2>&1 &
run_pid=$!
started+=("$run_pid")
job=words
web_start --broker "$broker" --orders

# --- a job in training: a notice, a freeze, a save, a restart, on a page that stays
page open "$url/"
page says words
page says running
page click words
page open "$url/jobs/words"
page live
page grid tttt
page steps_grow
page shot job_light
page keyboard
page headings
page contrast
page axe
page says Steps a second
page spark
page quiet
page no_buttons
page forge "$url/api/v1/jobs/words/save"
same "saves that another site's page ordered" "$(query "SELECT count(*) FROM round WHERE cause = 'operator'")" 0
page open "$(web_orders_url)"
page says words
page open "$url/jobs/words"
page order Save now
page says makes the checkpoint
page order Pin
page says is not deleted until it is unpinned
page order Notify rank=77
page refused rank 77 is not inside
page axe
page contrast
page shot dialog_light
page size 400 dark
page fits
page contrast
page shot dialog_400_dark
page size 1400 light
page order Notify rank=2 grace=8 text=spot
page says Rank 2 is told that it will be ended
page says Next planned freeze
page shot notice_light
page says round
page says No step is lost
page says Generation 2
page grid tttt
page steps_grow
page shot restarted_light
page same_page
page quiet
round=$(query "SELECT max(round) FROM round WHERE job = 'words' AND state = 'committed' AND cause = 'termination'")

# --- the broker dies and comes back
broker_kill
page says Shown as it was last known
page says no answer
page shot away_light
broker_start
page no_longer Shown as it was last known
page live
page steps_grow
page same_page

# --- each view, in both schemes, wide and narrow
for view in '' jobs/words "jobs/words/rounds/$round" jobs/words/journal jobs/words/checkpoints jobs/words/ranks; do
    page open "$url/$view"
    for scheme in light dark; do
        for width in 1400 400; do
            page size $width $scheme
            page fits
            page contrast
            page axe
            page shot "$(tr / _ <<<"view_$view")_${width}_$scheme"
        done
    done
    page headings
done
page size 1400 light
touch "$dir/end"
page open "$url/jobs/words"
page says finished
page quiet
web_stop
page end
