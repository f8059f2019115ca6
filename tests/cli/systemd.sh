#!/bin/bash
# systemd.sh - the units that are installed: systemd takes them, rates their exposure 1.5 at most, and musterd says what the
# broker's waits for.
set -euo pipefail
: "${MUSTERD:?}" "${BUILD_DIR:?}" "${MUSTER_PYTHON3:=python3}"
unit=$BUILD_DIR/tools/systemd/musterd.service
dir=$(mktemp -d -p /tmp) # the command of a unit has no space
trap 'rm -rf "$dir"' EXIT

# --- what a service manager hears, in this order
env -i PATH="$PATH" HOME="$dir" "$MUSTER_PYTHON3" - "$MUSTERD" "$dir" <<'END'
import os, signal, socket, subprocess, sys

musterd, folder = sys.argv[1:]
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(folder + "/notify")
heard.settimeout(60)
broker = subprocess.Popen(
    [musterd, "--db", folder + "/m.db", "--listen", f"ipc://{folder}/s"],
    env={"NOTIFY_SOCKET": folder + "/notify", "WATCHDOG_USEC": "400000", "LSAN_OPTIONS": "detect_leaks=0"},
    stderr=subprocess.DEVNULL,
)
lines = [heard.recv(100) for _ in range(4)]
assert lines == [b"READY=1"] + 3 * [b"WATCHDOG=1"], lines
broker.send_signal(signal.SIGTERM)
while (line := heard.recv(100)) == b"WATCHDOG=1":
    pass
assert line == b"STOPPING=1", line
assert broker.wait(60) == 0
END

# --- the units
ln -s "$MUSTERD" "$dir/musterd" # it is not installed, and its path may have a space
grep -q '^ExecStart=.*/musterd --listen ' "$unit" || { echo "no ExecStart in $unit"; exit 1; }
command -v systemd-analyze >/dev/null || { echo "skipped: the rating, systemd-analyze is not installed"; exit 77; }

# takes FROM NAME - systemd takes it under that name.
takes() {
    local said

    sed "s|^ExecStart=[^ ]*|ExecStart=$dir/musterd|; s|^EnvironmentFile=|&-|" "$1" >"$dir/$2"
    said=$(systemd-analyze verify --man=no "$dir/$2" 2>&1 | grep "$2" || true)
    [ -z "$said" ] || { echo "$said"; exit 1; }
    systemd-analyze security --offline=true --threshold=15 "$dir/$2" >"$dir/rating" 2>&1 || { tail -1 "$dir/rating"; exit 1; }
    tail -1 "$dir/rating"
}
takes "$unit" musterd.service
takes "${unit%/*}/muster-relay@.service" muster-relay@daemon.service
