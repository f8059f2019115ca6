# lib_selftest.sh - sourced by the checks' selftests: $tree is a tree of their own, in which a check must find faults.
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# must_refuse CASE FINDING COMMAND [ARG...] - the command fails, and a line that it prints matches FINDING.
must_refuse() {
    local about=$1 expected=$2 finding
    shift 2
    if finding=$("$@"); then
        echo "not refused: $about"
    elif ! grep -q -- "$expected" <<<"$finding"; then
        printf 'refused for another reason: %s\n%s\n' "$about" "$finding"
    else
        return 0
    fi
    failed=1
}
