#!/bin/bash
# rules.sh [--list] [ROOT] - each numbered rule of the protocol is named by a test, and each number that a test names is a rule.
#   defined   `**R5.3**` on a page of schema/: PROTOCOL.md, RECOVERY.md, TASKS.md
#   named     `R5.3` in a comment of a *.c, *.h, *.sh or *.pml under tests/, but not under tests/checks/
# It fails on a rule that no test names, a number that no page defines, and a number that is defined twice.
# --list prints what it found: a line a place, RULE FILE:LINE TEST.
set -euo pipefail
list=0
[ "${1:-}" != --list ] || { list=1; shift; }
cd "${1:-${SOURCE_DIR:-$(dirname "$0")/../..}}"

# Rules without a test, each with the reason: RULE REASON. It may only shrink.
missing='
'

# RULE FILE:LINE
defined=$(grep -noE '\*\*R[0-9]+\.[0-9]+\*\*' schema/PROTOCOL.md schema/RECOVERY.md schema/TASKS.md |
    sed -E 's/^(.*):\*\*(.*)\*\*$/\2 \1/')

# RULE FILE:LINE TEST. The test of a C file is the function that the comment is above of or in; that of a script is its file.
named=$(find tests -name checks -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.sh' -o -name '*.pml' \) -print0 |
    LC_ALL=C sort -z | xargs -0 awk '
    function report(rule, line) { print rule, file ":" line, name }
    function flush(    i) {
        for (i = 0; i < count; i++)
            report(rules[i], lines[i])
        count = 0
    }
    function take(rule) {
        rules[count] = rule
        lines[count++] = FNR
        if (inside || script)
            flush()
    }
    FNR == 1 {
        flush()
        file = FILENAME
        script = file ~ /\.sh$/
        n = split(file, parts, "/")
        base = name = parts[n]
        inside = comment = 0
    }
    !script && /^}/ { inside = 0; name = base }
    !script && !comment && /^[a-z].*\(/ && !/;$/ {
        name = $0
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        flush()
    }
    !script && /^{/ { inside = 1 }
    {
        text = $0
        if (script) {
            if (!match(text, /(^|[ \t])#/))
                next
            text = substr(text, RSTART)
        } else if (!comment) {
            if (!match(text, /\/[*\/]/))
                next
            text = substr(text, RSTART)
            comment = text ~ /^\/\*/
        }
        if (comment && text ~ /\*\//)
            comment = 0
        while (match(text, /(^|[^A-Za-z0-9_.])R[0-9]+\.[0-9]+/)) {
            rule = substr(text, RSTART, RLENGTH)
            sub(/^[^R]/, "", rule)
            take(rule)
            text = substr(text, RSTART + RLENGTH)
        }
    }
    END { flush() }')

if [ "$list" = 1 ]; then
    LC_ALL=C sort -V <<<"$named"
    exit
fi
failed=0
finding() { echo "$1" && failed=1; }

rules=$(cut -d ' ' -f 1 <<<"$defined" | LC_ALL=C sort -V)
while read -r rule; do
    finding "$(awk -v rule="$rule" '$1 == rule { print $2 }' <<<"$defined" | tr '\n' ' ')defines $rule, which is another rule already"
done < <(uniq -d <<<"$rules")
while read -r rule place; do
    excused=$(awk -v rule="$rule" '$1 == rule' <<<"$missing")
    tests=$(awk -v rule="$rule" '$1 == rule' <<<"$named")
    if [ -z "$tests" ] && [ -z "$excused" ]; then
        finding "$place: $rule is named by no test: write its number above the test that fails when the rule is broken"
    elif [ -n "$tests" ] && [ -n "$excused" ]; then
        finding "$place: $rule has a test: take it off the list of rules.sh"
    fi
done <<<"$defined"
while read -r rule place _; do
    grep -qxF "$rule" <<<"$rules" || finding "$place: $rule is no rule of the pages in schema/"
done < <(grep . <<<"$named" || true)
while read -r rule _; do
    grep -qxF "$rule" <<<"$rules" || finding "tests/checks/rules.sh: $rule is on its list and no rule of the pages in schema/"
done < <(grep . <<<"$missing" || true)
[ "$failed" = 0 ] && echo "$(uniq <<<"$rules" | wc -l) rules: $(grep -c . <<<"$missing" || true) without a test, the others in $(grep -c . <<<"$named" || true) places"
exit "$failed"
