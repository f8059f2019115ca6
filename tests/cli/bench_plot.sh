#!/bin/bash
# bench_plot.sh - `muster bench --plot` draws its times as an SVG picture, names the package that it needs, and takes no word of a
# file's name for a command.
set -euo pipefail
: "${MUSTER:?}" "${MUSTERD:?}" "${MUSTER_PYTHON3:=python3}"
export MUSTERD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/here" "$dir/nothing" "$dir/broken"
failed=0

# --- plots PATH CODE WORDS FILE [TOLD] - with that PATH it ends with that code, and stderr has these words; TOLD: figures of
# so many runs are on stdout
plots() {
    local got=0 told
    PATH=$1 "$MUSTER" bench --dir "$dir/here" --ranks 2 --size 1M --rounds 1 --plot "$4" --json > "$dir/out" 2> "$dir/err" || got=$?
    told=$(grep -c '"save_ms"' "$dir/out") || true
    if [ "$got" != "$2" ] || ! { [ -z "$3" ] || grep -q -- "$3" "$dir/err"; } || [ "$told" != "${5:-0}" ]; then
        echo "--plot $4 with PATH=$1: exit $got instead of $2, or not \"$3\":"
        cat "$dir/out" "$dir/err"
        failed=1
    fi
    [ -z "$(ls -A "$dir/here")" ] || { echo "it left: $(ls -A "$dir/here")"; failed=1; }
}

plots "$dir/nothing" 1 'install the package gnuplot-nox, or leave out --plot' "$dir/picture.svg"
plots "$dir/nothing" 2 'No such file or directory; name another file' "$dir/none/picture.svg"
plots "$dir/nothing" 2 'Is a directory; name another file' "$dir/here"
printf '#!/bin/sh\necho "it is broken" >&2\nexit 3\n' > "$dir/broken/gnuplot"
chmod +x "$dir/broken/gnuplot"
plots "$dir/broken" 1 'gnuplot could not draw' "$dir/picture.svg" 1
grep -qx 'it is broken' "$dir/err" || { echo "it does not pass on what gnuplot says: $(cat "$dir/err")"; failed=1; }
[ ! -e "$dir/picture.svg" ] || { echo "there is a picture that nobody drew"; failed=1; }
[ "$failed" = 0 ] || exit 1

command -v gnuplot > /dev/null || { echo "skipped: no gnuplot, so nothing is drawn (Debian: apt-get install gnuplot-nox)" && exit 77; }
cd "$dir"
for file in "|touch injected" "it's \"one\".svg"; do
    plots "$PATH" 0 '' "$file" 1
    [ ! -e injected ] || { echo "a file's name was taken for a command"; failed=1; }
    "$MUSTER_PYTHON3" - "$file" "$dir/out" <<'END' || failed=1
import json, sys
import xml.etree.ElementTree as tree

root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
words = " ".join("".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text"))
answer = json.load(open(sys.argv[2]))
for shown in ("a preemption of 2 ranks of 1.0 MB each", "all ranks agree", "they save", "plain writes, plain reads"):
    assert shown in words, (shown, words)
for name in ("save_ms", "left_ms", "restart_ms", "plain_write_ms", "plain_read_ms"):
    assert f"{answer[name]:.0f}" in words.split(), (name, answer, words)
END
done
exit "$failed"
