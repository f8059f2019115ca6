#!/bin/bash
# man.sh - muster(1) and `muster help` name the same verbs and, verb by verb, the same options.
set -eu
: "${MUSTER:?}" "${SOURCE_DIR:?}"
page=$SOURCE_DIR/tools/man/muster.1
failed=0

differ() { # WHAT HELP MAN
    if [ "$2" != "$3" ]; then
        printf '%s differ.\n--- help\n%s\n--- muster.1\n%s\n' "$1" "$2" "$3"
        failed=1
    fi
}
options_in() { grep -oE -- '--[a-z][a-z-]*' | LC_ALL=C sort -u; }
listed() { sed -n 's/^  \(--[a-z-]*\).*/\1/p' | LC_ALL=C sort -u; } # lines that begin with one
# The options that are defined (lines .BI, .B, .BR behind .TP) in one .SS section of the page.
section() {
    awk -v name="$1" '/^\.S[SH] / { inside = ($0 == ".SS " name) } inside && before ~ /^\.TP/ { print } { before = $0 }' \
        "$page" | sed 's/\\-/-/g' | options_in
}

help_verbs=$("$MUSTER" help | awk '/^  [a-z]+ / && !/^  --/ { print $1 }' | LC_ALL=C sort)
man_verbs=$(awk '/^\.S[SH] / { inside = ($0 == ".SH VERBS") } inside && before ~ /^\.TP/ { print $2 } { before = $0 }' "$page" |
    LC_ALL=C sort)
differ "the verbs" "$help_verbs" "$man_verbs"
[ -n "$help_verbs" ] || { echo "no verb found in the help"; failed=1; }

common=$("$MUSTER" help | listed)
differ "the common options" "$common" "$(section 'All verbs but run')"
for verb in $help_verbs; do
    case $verb in
    help | version) continue ;;
    run) own=$("$MUSTER" run --help | grep -E '^ +(-.,)? *--' | options_in) ;;
    *) own=$("$MUSTER" "$verb" --help | listed | LC_ALL=C comm -23 - <(printf '%s\n' "$common")) ;;
    esac
    differ "the options of $verb" "$own" "$(section "$verb")"
done
[ "$failed" = 0 ] && echo "muster(1) and the help agree"
exit "$failed"
