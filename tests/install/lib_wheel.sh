# lib_wheel.sh - sourced: what a finished wheel has to be, without a machine of its own to install it on.

wheel_fails() { echo "$*"; exit 1; }

# wheel_exports WHEEL - the module gives Python its entry, and no name of the libraries inside it to anybody.
wheel_exports() {
    local folder names
    folder=$(mktemp -d)
    "$PYTHON" -m zipfile -e "$1" "$folder"
    names=$(nm -D --defined-only "$folder/muster/_native.abi3.so" | awk '{ print $NF }')
    rm -rf "$folder"
    [ "$names" = PyInit__native ] || wheel_fails "the wheel's module exports other names than PyInit__native: $names"
}

# wheel_holds WHEEL CURL_CONFIG - SQLite, jansson, libzmq and curl are inside its module, by a text of each; wheel_exports
# and wheel_libraries tell that nobody sees them and that none is asked for. That curl was built for HTTP alone, and no
# command of another protocol came along.
wheel_holds() {
    local folder text lacks='' foreign
    folder=$(mktemp -d)
    "$PYTHON" -m zipfile -e "$1" "$folder"
    for text in 'SQLite format 3' 'unable to decode byte 0x%x' 'virtual void zmq::' 'not supported or disabled in libcurl'; do
        grep -qaF "$text" "$folder/muster/_native.abi3.so" || lacks="$lacks \"$text\""
    done
    foreign=$(grep -aoE 'EPSV|EHLO %s|USER %s|OpenSSL|nghttp2' -r "$folder/muster/_native.abi3.so" "$folder"/*.data/scripts | sort -u || true)
    rm -rf "$folder"
    [ -z "$lacks" ] || wheel_fails "the wheel's module lacks what SQLite, jansson, libzmq and curl have in them:$lacks"
    [ "$("$2" --protocols)" = HTTP ] || wheel_fails "the wheel's curl speaks more than HTTP: $("$2" --protocols | tr '\n' ' ')"
    [ -z "$foreign" ] || wheel_fails "the wheel has what a curl for HTTP alone has not: $foreign"
}

# wheel_libraries WHEEL - auditwheel finds a manylinux tag, and names no library but those of the policy that a bare
# Debian has. The policy itself also allows X11 and GLib.
wheel_libraries() {
    local show named foreign
    show=$("$PYTHON" -m auditwheel show "$1" | tr '\n' ' ' | sed 's/- /-/g') # it breaks its lines
    grep -q 'consistent with the following platform tag: *"manylinux_2_[0-9]*_' <<<"$show" || wheel_fails "$show"
    named=$(grep -oE 'lib[A-Za-z0-9_+.-]*\.so(\.[0-9]+)*' <<<"$show" | sort -u)
    grep -qx 'libc\.so\.6' <<<"$named" || wheel_fails "auditwheel names no libc.so.6, so this reads its list wrongly: $show"
    foreign=$(grep -vxE 'lib(c|m|stdc\+\+|gcc_s|pthread|rt|dl)\.so\.[0-9]+' <<<"$named" || true)
    [ -z "$foreign" ] || wheel_fails "the wheel needs what a Debian may lack: $foreign"
}

# wheel_pythons WHEEL - it is installed into an empty environment of each CPython of this machine that it says it
# serves, and a node takes a step there with the wheel's own broker.
wheel_pythons() {
    local minor python found
    for minor in 10 11 12 13 14; do
        found=''
        for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python "$(command -v "python3.$minor" || true)"; do
            "$python" -c "import sys, venv, ensurepip; assert sys.version_info[:2] == (3, $minor)" 2>/dev/null || continue
            found=1
            wheel_steps "$1" "$python"
            break
        done
        [ -n "$found" ] || echo "skipped: Python 3.$minor is not installed, so the wheel was not shown with it"
    done
}
wheel_steps() { # WHEEL PYTHON
    local folder broker result=0
    folder=$(mktemp -d)
    (
        unset PYTHONPATH PYTHONHOME "${!MUSTER@}" # the wheel alone is meant
        cd "$folder" && "$2" -m venv fresh &&
            fresh/bin/python -m pip install -q --disable-pip-version-check "$1" || exit 1
        fresh/bin/musterd --listen 'tcp://127.0.0.1:*' --port-file port --db muster.db 2>broker.log &
        broker=$!
        trap 'kill $broker' EXIT
        MUSTER_CHECKPOINT_DIR=$folder/checkpoints MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_JOB=job \
            timeout 60 fresh/bin/python - <<'END_PROGRAM'
import os, pathlib, sys, time

while not pathlib.Path("port").exists() or not pathlib.Path("port").read_text():
    time.sleep(0.01)  # until the broker listens
os.environ["MUSTER_BROKER"] = pathlib.Path("port").read_text().splitlines()[0]
import muster

assert pathlib.Path(muster.__file__).is_relative_to(pathlib.Path("fresh").resolve()), muster.__file__
w = bytearray(b"before")
state = muster.TrainingState()
state.add_bytes("w", w)
with muster.Node(state=state, layout="sharded", save_every=1) as node:
    w[:] = b"behind"
    node.step()
    node.step()
    node.wait_until_saved(30)
w[:] = b"after!"
with muster.Node(state=state, layout="sharded") as node:
    assert node.steps_done >= 1 and w == b"behind", (node.steps_done, w)
print(f"Python {sys.version.split()[0]}: a node took steps, and its checkpoint was restored")
END_PROGRAM
    ) || result=$?
    rm -rf "$folder"
    [ $result = 0 ] || wheel_fails "the wheel does not work with $2"
}
