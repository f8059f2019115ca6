#!/bin/bash
# wire_page.sh - the tables of schema/WIRE.md are those of wire.def, and the script that writes them sees where they are not.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
schema/wire_page.sh --check

# One change of a copy at a time: it is found, and written back.
for change in '/^| report_begun |/d' 's/^| world_size | uint | 16384 |/| world_size | uint | 16383 |/' 's/^| cancellable | bool |/| cancellable | int |/' \
    's/^### ALIVE (8, down)/### ALIVE (9, down)/' '/^### PING (9, down)/,/^|---/s/^|---.*/&\n| another | uint | 1 | |/' \
    '/^| applied_seq |/d' 's/^| checksum | str | 95 |/| checksum | str | 94 |/' 's/ list of lease / list of task /'; do
    sed "$change" schema/WIRE.md >"$copy"
    ! cmp -s "$copy" schema/WIRE.md || { echo "sed '$change' changes nothing" && exit 1; }
    ! schema/wire_page.sh --check "$copy" >/dev/null || { echo "not found: $change" && exit 1; }
    schema/wire_page.sh "$copy"
    schema/wire_page.sh --check "$copy" || { echo "not written back: $change" && exit 1; }
done
for change in 's/^### PING (/### PONG (/' '/^### PING (/,/^|---/d' 's/^### lease (/### leased (/' '/^### Head of UP /,/^|---/d'; do # a section is written by hand
    sed "$change" schema/WIRE.md >"$copy"
    ! schema/wire_page.sh --check "$copy" >/dev/null 2>&1 || { echo "not found: $change" && exit 1; }
done
echo "each table of WIRE.md is that of wire.def"
