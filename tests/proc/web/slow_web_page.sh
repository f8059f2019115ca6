#!/bin/bash
# The page of `muster web` in a browser while a job trains, gets a notice, saves, restarts, and while its broker dies and
# comes back: it follows, without loading itself again. Then in both colour schemes, wide and narrow, by keyboard alone, and
# with ten thousand ranks. WEB_SHOTS=DIR keeps pictures for a person to look at.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"
. "$(dirname "$0")/lib_browser.sh"

# The rules of axe-core, from a package of the Python index that carries them.
axe=$SOURCE_DIR/build/axe
if [ ! -x "$axe/bin/python" ] || [ -z "$(find "$axe" -name axe.min.js)" ]; then
    { python3 -m venv "$axe" && "$axe/bin/pip" install -q --no-deps axe-playwright-python==0.1.8; } >"$dir/axe.log" 2>&1 ||
        say "not tried: axe-core, the package index did not answer"
fi
export AXE=$(find "$axe" -name axe.min.js 2>/dev/null | head -n 1)

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

# --- a grid of 256, and one of ten thousand
"$rows" some "$dir/some.db" "$(now_ms)"
web_start --db "$dir/some.db"
browser_start
page open "$url/jobs/words"
page says 256 ranks: a cell is a rank
page axe
page shot some_light
page size 1400 dark
page shot some_dark
page end
web_stop
"$rows" ranks "$dir/ranks.db" "$(now_ms)"
web_start --db "$dir/ranks.db"
browser_start
page open "$url/jobs/words"
page says 10,000 ranks: a cell is a rank
page shot ranks_light
page figures
page axe
page size 400 dark
page says a cell is a host
page shot ranks_400_dark
page fits
page quiet
page end
web_stop
