#!/bin/bash
# man.sh - the man pages and the help agree, verb by verb and option by option, and the pages have no mistake that
# groff sees. The programs that the pages show are the files.
set -eu
shopt -s lastpipe # a function at the end of a pipe sets variables here
: "${MUSTER:?}" "${MUSTERD:?}" "${SOURCE_DIR:?}"
pages=$SOURCE_DIR/tools/man
failed=0

wrong() { echo "$*"; failed=1; }
differ() { # WHAT HELP PAGE
    [ "$2" = "$3" ] || wrong "$(printf '%s differ.\n--- help\n%s\n--- page\n%s\n' "$1" "$2" "$3")"
}
plain() { sed 's/\\-/-/g; s/\\f[BIR]//g; s/\\&//g; s/\\e/\\/g' "$1"; }
options_in() { grep -oE -- '(^|[^-a-z])--[a-z][a-z-]*' | grep -oE -- '--.*' | LC_ALL=C sort -u; }
listed() { sed -n 's/^  \(--[a-z-]*\).*/\1/p' | LC_ALL=C sort -u; } # lines that begin with one
defined_in() { # PAGE - the options that a .TP of the page's OPTIONS defines
    plain "$1" | awk '/^\.S[HS] / { inside = ($0 == ".SH OPTIONS") } inside && before == ".TP" { print } { before = $0 }' | options_in
}

# --- each verb has a page, and muster(1) names it
help_verbs=$("$MUSTER" help | awk '/^  [a-z]+ / && !/^  --/ { print $1 }' | LC_ALL=C sort)
[ -n "$help_verbs" ] || wrong "no verb found in the help"
paged=$(find "$pages" -name 'muster-*.1' -printf '%f\n' | sed 's/^muster-//; s/\.1$//'; printf '%s\n' help version)
differ "the verbs and the pages" "$help_verbs" "$(LC_ALL=C sort <<<"$paged")"
for verb in $help_verbs; do
    plain "$pages/muster.1" | grep -qE "^(muster-$verb\(1\)|muster $verb\b)|, muster-$verb\(1\)" || wrong "muster(1) does not name $verb"
done

# --- each option of the help is defined in its page, and no other is
common=$("$MUSTER" help | listed)
differ "the common options" "$common" "$(defined_in "$pages/muster.1")"
all=$common$'\n--version\n'$("$MUSTERD" --help | options_in)
for verb in $help_verbs; do
    case $verb in
    help | version) continue ;;
    run) own=$("$MUSTER" run --help | grep -E '^ +(-.,)? *--' | options_in) ;;
    *)
        has=$("$MUSTER" "$verb" --help | listed)
        own=$(LC_ALL=C comm -23 <(echo "$has") <(echo "$common"))
        lacking=$(LC_ALL=C comm -23 <(echo "$has") <(plain "$pages/muster-$verb.1" | options_in))
        [ -z "$lacking" ] || wrong "muster-$verb(1) does not name $lacking"
        ;;
    esac
    differ "the options of $verb" "$own" "$(defined_in "$pages/muster-$verb.1")"
    all+=$'\n'$own
done
differ "the options of musterd" "$("$MUSTERD" --help | grep -E '^ +--' | options_in)" "$(defined_in "$pages/musterd.8")"

# --- no page names an option, a verb or a page that does not exist
# Shown in examples: options of pkg-config, pg_dump, sbatch, torchrun and a user's program, and --name VALUE.
all=$(printf '%s\n' "$all" --cflags --libs --ntasks --max-restarts --signal --requeue --large --steps --name \
    --from-file --kill-on-bad-exit --now --open-mode --if-exists | LC_ALL=C sort -u)
there=$(find "$pages" -type f -printf '%f\n' | sed 's/\.\([1378]\)$/(\1)/' | LC_ALL=C sort)
none_of() { # PAGE WHAT KNOWN - each line of stdin is known
    local unknown

    unknown=$(LC_ALL=C sort -u | LC_ALL=C comm -23 - <(LC_ALL=C sort -u <<<"$3") | tr '\n' ' ')
    [ -z "$unknown" ] || wrong "$(basename "$1") names what is not there: $2 $unknown"
}
for page in "$pages"/*; do
    plain "$page" | options_in | none_of "$page" options "$all"
    sed -n 's/.*\\fBmuster \([a-z]*\).*/\1/p' "$page" | none_of "$page" verbs "$help_verbs"
    plain "$page" | grep -oE '\b(lib)?muster(d|-[a-z]+)?\([1378]\)' | none_of "$page" pages "$there"
done

# --- each status, each call and each table of a shared database that a page names exists
statuses=$(sed -n 's/^X(\(MUSTER_E_[A-Z_]*\),.*/\1/p' "$SOURCE_DIR/schema/status.def")
names=$(cat "$SOURCE_DIR"/client/include/muster/*.h "$SOURCE_DIR"/{schema/status.h,fenced/fenced_log.c} | grep -oE "\\bmuster_[a-z_]+")
for page in "$pages"/*; do
    { grep -oE 'MUSTER_E_[A-Z_]+' "$page" || true; } | none_of "$page" statuses "$statuses"
    { plain "$page" | grep -oE '\bmuster_[a-z_]+[a-z]\b' || true; } | none_of "$page" calls "$names"
done

# --- a program behind `.\" file: PATH` is that file
while IFS=: read -r page number path; do
    sed -n "$((number + 1)),\$p" "$page" | sed '1,/^\.EX/d; /^\.EE/,$d' | sed 's/^\\&//; s/\\-/-/g; s/\\e/\\/g' |
        cmp -s - "$SOURCE_DIR/${path# }" || wrong "$(basename "$page") does not show ${path# } as it is"
done < <(grep -nE '^\.\\" file: ' "$pages"/* | sed 's/\.\\" file//; s/::/:/')

# --- groff has no complaint
if command -v groff >/dev/null; then
    for page in "$pages"/*.[1378]; do
        said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$said" ] || wrong "groff says of $(basename "$page"): $said"
    done
fi
[ "$failed" = 0 ] && echo "the man pages and the help agree"
exit "$failed"
