#!/bin/bash
# prose.sh [ROOT] - what people read is plain and short: sentences of *.md and of man pages, words, columns, sizes.
#   long       a sentence of more than 30 words (README.md: 25), or a line of more than 100 columns (man page, header)
#   word       a word or phrase of the list below
#   headless   a sentence that begins with Who, Whose, What, Of whom, Of what, Of which and is no question
#   size       a page beyond its bytes
# Code, quoted or not, is no prose. A cell of a table is a sentence of its own.
# A file that is not rewritten yet has its number of offences in `allowed`; it may only go down.
set -euo pipefail
cd "${1:-${SOURCE_DIR:-$(dirname "$0")/../..}}"

allowed='
'
sizes='README.md 8192
CONTRIBUTING.md 8192
tools/man/ 8192'

offences() { # FILES... - one line an offence: FILE:LINE: KIND: text
    LC_ALL=C awk '
    function report(kind, text) {
        gsub(/[ \t]+/, " ", text)
        sub(/^ /, "", text)
        printf "%s:%d: %s: %.90s\n", file, begun, kind, text
    }
    function words(text,    parts, count, i, n) {
        count = split(text, parts, /[ \t]+/)
        for (i = 1; i <= count; i++)
            if (parts[i] ~ /[A-Za-z0-9]/)
                n++
        return n
    }
    # One sentence.
    function sentence(text,    n) {
        n = words(text)
        if (n > limit)
            report("long", n " words: " text)
        if (text ~ /^[^A-Za-z]*(Who|Whose|What|Of whom|Of what|Of which) / && text !~ /\?[^A-Za-z]*$/ && n > 3)
            report("headless", text)
    }
    # The paragraph that was gathered: its sentences.
    function finish(    rest, at) {
        rest = paragraph
        paragraph = ""
        gsub(/e\.g\./, "eg", rest)
        while (match(rest, /[.!?][")*]* +[^ ]/)) {
            at = RSTART + RLENGTH - 2
            sentence(substr(rest, 1, at))
            rest = substr(rest, at + 1)
        }
        if (rest ~ /[A-Za-z]/)
            sentence(rest)
    }
    function add(text) {
        if (paragraph == "")
            begun = FNR
        paragraph = paragraph " " text
    }
    function banned(text,    lower) {
        lower = " " tolower(text) " "
        if (match(lower, /[^a-z](anew|all the same|of whom|put back|bystanders?|else it were|or it were)[^a-z]/)) {
            begun = FNR
            report("word", substr(lower, RSTART + 1, RLENGTH - 2))
        }
    }
    function columns(    line) {
        line = $0
        gsub(/[\200-\277]/, "", line) # the further bytes of a character
        if (length(line) > 100) {
            begun = FNR
            report("long", length(line) " columns")
        }
    }
    FNR == 1 {
        finish() # the last paragraph of the file before
        file = FILENAME
        code = 0
        markdown = FILENAME ~ /\.md$/
        header = FILENAME ~ /\.h$/
        limit = FILENAME == "README.md" ? 25 : 30
    }
    header { columns(); banned($0); next }
    markdown && /^ *```/ { finish(); code = !code; next }
    !markdown { columns() }
    !markdown && /^\.(EX|nf)/ { finish(); code = 1; next }
    !markdown && /^\.(EE|fi)/ { code = 0; next }
    code { next }
    markdown && /^    / && paragraph == "" { next } # indented code
    markdown {
        line = $0
        gsub(/`[^`]*`/, "CODE", line)
        gsub(/\]\([^)]*\)/, "", line)
        gsub(/[\[\]]/, "", line)
        banned(line)
        if (line ~ /^ *$/ || line ~ /^#/) { finish(); next }
        if (line ~ /^\|/) {
            finish()
            count = split(line, cells, "|")
            for (cell = 2; cell < count; cell++) {
                add(cells[cell])
                finish()
            }
            next
        }
        if (line ~ /^ *([-*]|[0-9]+\.) /) {
            finish()
            sub(/^ *([-*]|[0-9]+\.) /, "", line)
        }
        add(line)
        next
    }
    {
        line = $0
        banned(line)
        if (line ~ /^\.\\"/)
            next
        if (line ~ /^\./) { finish(); tag = line ~ /^\.TP/; next }
        gsub(/\\f[BIR]|\\&/, "", line)
        gsub(/\\-/, "-", line)
        add(line)
        if (tag) # the term, not the text
            finish()
        tag = 0
    }
    END { finish() }' "$@"
}

mapfile -t files < <(find . -path ./build -prune -o -path ./tests/fuzz -prune -o -path ./.git -prune -o -name '*.md' -print \
    -o -path './tools/man/*' -type f -print -o -path './client/include/*' -name '*.h' -print | sed 's#^\./##' | LC_ALL=C sort)
found=$(offences "${files[@]}")
failed=0
while read -r name bytes; do
    for file in "${files[@]}"; do
        case $file in
        "$name" | "$name"*.[1378])
            [ "$(wc -c <"$file")" -le "$bytes" ] || { echo "$file:1: size: $(wc -c <"$file") bytes, $bytes at most" && failed=1; }
            ;;
        esac
    done
done <<<"$sizes"
for file in "${files[@]}"; do
    mine=$(grep -a "^$file:" <<<"$found" || true)
    count=$(grep -ac . <<<"$mine" || true)
    may=$(awk -v file="$file" '$1 == file { print $2 }' <<<"$allowed")
    [ -n "$may" ] && listed=1 || listed=0 may=0
    if [ "$count" -gt "$may" ]; then
        head -n 30 <<<"$mine"
        [ $listed = 0 ] || echo "$file: $count offences, and $may are allowed until it is rewritten"
        failed=1
    elif [ "$count" -lt "$may" ]; then
        echo "$file: $count of $may offences are left; write that number into prose.sh"
    fi
done
[ "$failed" = 0 ] && echo "${#files[@]} files are plain and short"
exit "$failed"
