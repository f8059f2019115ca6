#!/bin/bash
# Are the reasons in the stories of tests/cli the words that the broker says? The simulator counts those of its rounds
# (sim_report.c), and the fixed set insists that each occurs.
set -euo pipefail
cd "$SOURCE_DIR"

# one string a line: adjacent literals are joined, and the first after a mark is taken
words=$(sed -n '/reason_words\[REASON_COUNT\]/,/^};/p' tests/sim/sim_report.c | grep -o '"[^"]*"' | tr -d '"')
reasons=$(sed -n '/cli_aborts\[\] = {/,/^};/p' tests/cli/stories.c | tr '\n' ' ' | sed 's/" *"//g; s/{"/\n{"/g' |
    sed -n 's/^{"[a-z_]*", *[0-9-]*, *[0-9-]*, *MUSTER_[A-Z_]*, *"\([^"]*\)".*/\1/p')
[ "$(wc -l <<<"$words")" -ge 20 ] && [ "$(wc -l <<<"$reasons")" -ge 20 ] ||
    { echo "too few words or reasons were found: did one of the lists change its form?"; exit 1; }
bad=0
while read -r reason; do
    grep -qF -f <(echo "$words") <<<"$reason" || { echo "no broker says: $reason"; bad=1; }
done <<<"$reasons"
while read -r word; do
    grep -qF -- "$word" <<<"$reasons" || { echo "no story of tests/cli tells: $word"; bad=1; }
done <<<"$words"
exit $bad
