#!/bin/bash
# prose.sh [ROOT] - what people read is plain and short: sentences of *.md and of man pages, words, columns, sizes.
#   long       a sentence of more than 25 words, or a line of more than 100 columns (man page, C).
#              In a public header a "·" ends a sentence, and lines that are set in are no prose.
#   word       a word or phrase of the list below, in C in a comment
#   table      a table in a comment that was flowed into its neighbour lines: the gap of its columns is inside one
#   stray      a comment that ends in "/" behind a sentence: the end of one that was flowed again
#   headless   a sentence that begins with Who, Whose, What, Of whom, Of what, Of which and is no question; in C in a
#              comment, but of tests. The heads of files may say "What always holds"
#   size       a page beyond its bytes
# Code, quoted or not, is no prose. A cell of a table is a sentence of its own.
set -euo pipefail
cd "${1:-${SOURCE_DIR:-$(dirname "$0")/../..}}"

sizes='README.md 8192
CONTRIBUTING.md 6144
schema/PROTOCOL.md 25600
tests/README.md 6144
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
        if (n > limit && !source)
            report("long", n " words: " text)
        if (text ~ /^[^A-Za-z]*(Who|Whose|What|Of whom|Of what|Of which) / && text !~ /\?[^A-Za-z]*$/ && n > 3 && \
            text !~ /What always holds/)
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
    function stray() {
        if ($0 ~ /(^ \*|[.!?:)]) \/( \/)* \*\/$/) {
            begun = FNR
            report("stray", $0)
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
        source = 0
        file = FILENAME
        code = 0
        markdown = FILENAME ~ /\.md$/
        header = FILENAME ~ /^(client\/include\/.*|schema\/status)\.h$/
        source = FILENAME ~ /\.[ch]$/ && !header
        comment = 0
        limit = 25
    }
    # One line of a comment of a public header.
    function header_text(line,    parts, count, i) {
        if (line ~ /^ *$/ || line ~ /^   /) { finish(); return } # between paragraphs; a table, an example
        count = split(line " ", parts, / · /)
        for (i = 1; i <= count; i++) {
            if (i > 1)
                finish()
            add(parts[i])
        }
    }
    header {
        columns()
        banned($0)
        stray()
        line = $0
        if (!comment) {
            if (!sub(/^.*\/\*/, "", line))
                next
            finish()
        } else
            sub(/^ *\*?/, "", line)
        comment = line !~ /\*\//
        sub(/ *\*\/.*/, "", line)
        header_text(line)
        next
    }
    source { # its comments
        columns()
        stray()
        if ($0 ~ /^ \* [^ ]+ .*[^ ]   +[^ ]/) {
            begun = FNR
            report("table", $0)
        }
        line = $0
        if (!comment && !sub(/^.*\/\*/, "", line))
            next
        comment = line !~ /\*\//
        sub(/\*\/.*/, "", line)
        banned(line)
        if (file ~ /^tests\//)
            next
        sub(/^ *\*? ?/, "", line)
        add(line)
        if (!comment)
            finish()
        next
    }
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
    -o -path './tools/man/*' -type f -print -o -name '*.[ch]' -print | sed 's#^\./##' | LC_ALL=C sort)
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
if [ -n "$found" ]; then
    head -n 60 <<<"$found"
    failed=1
fi
[ "$failed" = 0 ] && echo "${#files[@]} files are plain and short"
exit "$failed"
