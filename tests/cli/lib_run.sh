# Sourced by the tests of `muster run`: a scratch folder, waiting with a deadline, clean variables.
set -u
: "${MUSTER:?the path of the program muster}"
for name in $(compgen -e); do
    case $name in
    MUSTER_JOB | MUSTER_RANK | MUSTER_WORLD_SIZE | MUSTER_LOCAL_* | MUSTER_RESTART_* | MUSTER_BROKER | \
        SLURM_* | OMPI_* | PMI_* | PMIX_* | FLUX_* | JSM_* | SKYPILOT_* | SM_* | TPU_* | TORCHELASTIC_* | \
        RANK | WORLD_SIZE | LOCAL_RANK | TF_CONFIG | JOB_COMPLETION_INDEX) unset "$name" ;;
    esac
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/muster-run.XXXXXX")
export dir XDG_RUNTIME_DIR="$dir" XDG_STATE_HOME="$dir"
started=""

finish()
{
    local code=$?
    [ $BASHPID = $$ ] || exit $code # bash runs this in a child, too, that is killed before its program has begun
    for pid in $started; do kill -KILL "$pid" 2>/dev/null; done
    rm -rf "$dir"
    exit "$code"
}
trap finish EXIT

fail()
{
    echo "FAIL: $*"
    [ -d "$dir" ] || echo "somebody deleted the scratch folder $dir meanwhile"
    for file in "$dir"/out "$dir"/err; do
        [ -s "$file" ] && { echo "--- ${file##*/}"; tail -n 40 "$file"; }
    done
    exit 1
}

# await WHAT COMMAND...: until the command succeeds, at most 20 s, or 500 looks on a busy machine.
await()
{
    local what=$1 end=$((SECONDS + 20)) looks=0
    shift
    until "$@" 2>/dev/null; do
        looks=$((looks + 1))
        [ $SECONDS -lt $end ] || [ $looks -lt 500 ] || fail "waited in vain for $what"
        read -rt 0.02 <> <(:) || true
    done
}

# run ARGUMENT...: `muster run` in the foreground; its code in $code, its output in $dir/out and err.
run()
{
    "$MUSTER" run "$@" >"$dir/out" 2>"$dir/err"
    code=$?
}

# launch ARGUMENT...: the same in the background, with the signals' default actions; pid in $pid.
launch()
{
    : >"$dir/out" # now: what is awaited there must not be the last one's
    : >"$dir/err"
    env --default-signal=INT,HUP,TERM "$MUSTER" run "$@" >"$dir/out" 2>"$dir/err" &
    pid=$!
    started="$started $pid"
}

ended() { wait "$pid" 2>/dev/null; code=$?; }
is_gone() { ! kill -0 "$1" 2>/dev/null || [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1)" = Z ]; }
expect_code() { [ "$code" = "$1" ] || fail "$2: exit code $code instead of $1"; }
expect() { grep -qF -- "$2" "$dir/$1" || fail "$1 does not say: $2"; }
lines() { [ "$(cat "$1" 2>/dev/null | wc -l)" -ge "$2" ]; }
