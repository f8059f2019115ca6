#!/bin/bash
# wire_page.sh [--check] [PAGE] - writes into WIRE.md what wire.def says: the heading of each message, head and entry of a
# list, and field, kind and limit of its rows. The sentences, and the last column, are the page's own; a new field gets
# an empty one.
# --check only says where the page is not what this script would write.
set -euo pipefail
check=0
[ "${1:-}" != --check ] || { check=1; shift; }
here=$(cd "$(dirname "$0")" && pwd)
page=${1:-$here/WIRE.md}

# M NAME NUMBER DIRECTION, H DIRECTION or E NAME, then F NAME KIND LIMIT for each of its fields; a limit is still an
# expression.
expanded() {
    {
        echo '#define MSG(type, number, way, lower, fields) @M type number way@fields'
        echo '#define HEAD(way, type, fields) @H way@fields'
        echo '#define ENTRY(kind, type, fields) @E kind@fields'
        for kind in U:uint S:str R:bin; do
            echo "#define ${kind%:*}(name, max) @F name ${kind#*:} max@"
        done
        echo '#define I(name) @F name int@'
        echo '#define B(name) @F name bool@'
        echo '#define LIST(of) list:of'
        echo '#define L(name, of, max) @F name LIST(of) max@'
        grep -v '^#include' "$here/limits.h"
        cat "$here/wire/wire.def"
    } | "${CC:-cc}" -E -P -x c - | tr '\n' ' ' | tr '@' '\n' | grep -E '^[MHEF] '
}

declare -A limits=([UINT64_MAX]='2^64-1' [INT64_MAX]='2^63-1' [UINT32_MAX]='2^32-1' [INT32_MAX]='2^31-1')

table() {
    local what name kind rest

    while read -r what name kind rest; do
        case $what in
        M) echo "M|$name|### $name ($kind, ${rest,,})"; continue ;;
        H) echo "M|head $name|### Head of $name messages"; continue ;;
        E) echo "M|$name|### $name (entry of a list)"; continue ;;
        esac
        [ -z "$rest" ] || [ -n "${limits[$rest]:-}" ] ||
            limits[$rest]=$(($(sed -E 's/U?INT64_C//g; s/\([a-z0-9_]+_t\)//g; s/([0-9])[UL]+/\1/g' <<<"$rest")))
        echo "F|$name|${kind/:/ of }|${rest:+${limits[$rest]}}"
    done < <(expanded)
}

written() { # TABLE - the page, with it
    awk -F'|' -v table="$1" '
    function finish(    i, row) { # the rows of the message that was open
        for (i = 0; i < fields[open]; i++) {
            row = field[open, i]
            printf "%s |%s|\n", row, (row in meaning) ? meaning[row] : " "
        }
        split("", meaning)
        open = ""
    }
    BEGIN {
        while ((getline line < table) > 0) {
            split(line, part, "|")
            if (part[1] == "M") {
                at = part[2]
                heading[at] = part[3]
            } else
                field[at, fields[at]++] = "| " part[2] " | " part[3] " |" (part[4] == "" ? "" : " " part[4])
        }
    }
    /^### ([A-Za-z_]+ \(|Head of )/ {
        name = $0
        sub(/^### /, "", name)
        if (!sub(/^Head of /, "head ", name))
            sub(/ .*/, "", name)
        sub(/ messages$/, "", name)
        if (name in heading) {
            print heading[name]
            seen[name] = 1
            wanted = name
            next
        }
        print "wire_page.sh: " FILENAME ":" FNR ": wire.def has no " name > "/dev/stderr"
        bad = 1
    }
    /^#/ { wanted = "" }
    wanted != "" && /^\|---/ { print; open = wanted; wanted = ""; next }
    open != "" && /^\|/ { # an old row: its meaning is kept by the name of its field
        name = $2
        gsub(/ /, "", name)
        text = $0
        sub(/^\|[^|]*\|[^|]*\|[^|]*\|/, "", text)
        sub(/\|$/, "", text)
        for (i = 0; i < fields[open]; i++)
            if (index(field[open, i], "| " name " |") == 1)
                meaning[field[open, i]] = text ~ /[^ ]/ ? text : " "
        next
    }
    open != "" { finish() }
    { print }
    END {
        if (open != "")
            finish()
        for (name in heading)
            if (!(name in seen)) {
                print "wire_page.sh: " FILENAME " has no section of " name ": write `" heading[name] "`, a sentence and the head of a table" > "/dev/stderr"
                bad = 1
            }
        exit bad
    }' "$page"
}

new=$(mktemp)
trap 'rm -f "$new" "$new.table"' EXIT
table >"$new.table"
written "$new.table" >"$new"
if [ "$check" = 0 ]; then
    cmp -s "$new" "$page" || cat "$new" >"$page"
elif ! diff "$page" "$new"; then
    echo "$page:1: its tables are not those of wire.def (lines with >): run schema/wire_page.sh, and say what new fields mean"
    exit 1
fi
