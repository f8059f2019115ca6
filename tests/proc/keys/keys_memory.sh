#!/bin/bash
# Secrets in memory: no text of a key file stays in a rank, none of the seed that signs stays in the broker, and a broker with
# keys leaves no core file. (libzmq keeps its own copies of CURVE keys, in binary.)
. "$(dirname "$0")/../lib.sh"
cd "$dir"

"$muster" key add own --job '*' --sign --db "$db" >/dev/null
broker_options=(--sign)
broker_start
MUSTER_KEY_FILE=$dir/own.key ranks_start 1 --steps 1000000 --step-ms 20 --say-every 5
await "steps" rank_said 0 'step 5'

# holds_text PID FILE WORD - is the last word of that line of FILE in memory that the process can write to?
holds_text() {
    python3 - "$@" <<'END'
import re, sys

pid, path, name = sys.argv[1:]
line = next(line for line in open(path) if not name or line.startswith(name))
secret = line.split()[-1].encode()
found = False
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
    for begin, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", maps.read(), re.M):
        begin, end = int(begin, 16), int(end, 16)
        if end - begin > 1 << 26:
            continue # a sanitizer's own
        try:
            memory.seek(begin)
            found |= secret in memory.read(end - begin)
        except (OSError, ValueError, OverflowError):
            pass
sys.exit(0 if found else 1)
END
}
not holds_text "${pids[0]}" "$dir/own.key" secret || fail "a rank's memory has the secret of its key file"
not holds_text "$broker_pid" "$db.sign" '' || fail "the broker's memory has the seed that it signs with, as text"
holds_text "$broker_pid" "$db.key" '' || fail "the look into a process's memory sees nothing"

# dies_with_core COMMAND... - it starts, is ended by SIGABRT, and the kernel says that it wrote a core file.
dies_with_core() {
    (
        ulimit -c 1000 # blocks: the beginning of one is enough
        cd "$dir" && python3 - "$@" <<'END'
import os, signal, subprocess, sys, time

ready = sys.argv[1]
child = subprocess.Popen(sys.argv[2:], stderr=subprocess.DEVNULL)
deadline = time.monotonic() + 40
while not os.path.exists(ready):
    if time.monotonic() > deadline or child.poll() is not None:
        sys.exit(2)
    time.sleep(0.02)
os.kill(child.pid, signal.SIGABRT)
_, status = os.waitpid(child.pid, 0)
child.returncode = 0
sys.exit(0 if os.WIFSIGNALED(status) and os.WCOREDUMP(status) else 1)
END
    )
}
kill_child "${pids[0]}" "the rank"
broker_stop
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:disable_coredump=0:handle_abort=0:use_madv_dontdump=1
code=0
dies_with_core "$dir/ready" "$musterd" --db "$db" --listen "$listen" --port-file "$dir/ready" --sign || code=$?
same "a broker with keys left a core file, or did not start (1: neither)" "$code" 1
code=0
dies_with_core "$dir/ready2" "$musterd" --db "$dir/open/muster.db" --listen "ipc://$dir/open.sock" --port-file "$dir/ready2" || code=$?
case $code in
0) ;;
1) say "(this host writes no core files at all, so that part shows nothing)" ;;
*) fail "a broker without keys did not start" ;;
esac
rm -f "$dir"/core*
not_checked=1
finish "no text of a secret stays in the memory of a rank or of the broker, and a broker with keys leaves no core file"
