#!/bin/bash
# The page of `muster web` with 256 ranks and with ten thousand, and the zoom of its time line: by the links below it, by
# keys, by dragging, by the wheel. How long the large page takes is measured beside what this browser needs for a bare
# page of as many rows, in the same run. WEB_SHOTS=DIR keeps pictures for a person to look at.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib_web.sh"
. "$(dirname "$0")/lib_browser.sh"

"$rows" some "$dir/some.db" "$(now_ms)"
web_start --db "$dir/some.db"
browser_start
page open "$url/jobs/words"
page says 256 ranks: a cell is a rank
page axe
page shot some_light
page zoom
page same_page
page axe
page fits
page contrast
page shot zoom_light
page size 400 dark
page fits
page contrast
page shot zoom_400_dark
page size 1400 dark
page shot some_dark
page quiet
page end
web_stop

"$rows" ranks "$dir/ranks.db" "$(now_ms)"
web_start --db "$dir/ranks.db"
browser_start
page open "$url/jobs/words"
page says 10,000 ranks: a cell is a rank
page shot ranks_light
page axe
page size 400 dark
page says a cell is a host
page shot ranks_400_dark
page fits
page size 1400 light
page quick 10000 "$url/jobs/words"
page quiet
page end
web_stop
