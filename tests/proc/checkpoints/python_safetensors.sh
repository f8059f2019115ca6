#!/bin/bash
# Shard files and the public safetensors package: it reads what muster writes, muster reads what it writes, byte for
# byte, every element type. The package goes into an environment of its own in the build's folder, once.
set -euo pipefail
tensors=${TESTS_DIR:?}/proc/prog_tensors
venv=${BUILD_DIR:?}/tests/python
dir=$(mktemp -d "${TMPDIR:-/tmp}/muster-python.XXXXXX")
trap 'rm -rf "$dir"' EXIT

skip() {
    echo "skipped: $*"
    exit 77
}
fail() {
    echo "FAILED: $*"
    exit 1
}

if ! "$venv/bin/python" -c 'import safetensors' 2>/dev/null; then
    command -v python3 >/dev/null || skip "no python3"
    rm -rf "$venv"
    timeout 60 python3 -m venv "$venv" >"$dir/venv.log" 2>&1 || skip "no python environment: $(tail -n 1 "$dir/venv.log")"
    timeout 60 "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 10 safetensors \
        >"$dir/pip.log" 2>&1 || skip "no package index gives safetensors"
fi
python() { "$tensors" list | "$venv/bin/python" "$(dirname "$0")/python_safetensors.py" "$@"; }

"$tensors" write "$dir/ours.safetensors" || fail "muster could not write"
python read "$dir/ours.safetensors" || fail "the package does not read what muster wrote"
python write "$dir/theirs.safetensors" || fail "the package could not write"
"$tensors" read "$dir/theirs.safetensors" || fail "muster does not read what the package wrote"
"$tensors" read "$dir/ours.safetensors" || fail "muster does not read what it wrote"
printf '\356' | dd of="$dir/theirs.safetensors" bs=1 seek=$(($(stat -c %s "$dir/theirs.safetensors") - 1)) conv=notrunc status=none
! "$tensors" read "$dir/theirs.safetensors" >/dev/null || fail "a changed byte goes unnoticed"
echo "$("$tensors" list | wc -l) entries, $("$venv/bin/python" -c 'import safetensors; print("safetensors", safetensors.__version__)'): both directions"
