#!/bin/bash
# A link to the shared database that takes 80 KiB a second: its start, and a job's batches, get through all the same.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
listen_of=([a]="ipc://$dir/a.sock")
both=${listen_of[a]}
mkdir "$dir/slow"
python3 -c '
import os, socket, sys, threading, time

def copy(source, target, rate):
    try:
        while data := source.recv(8192):
            target.sendall(data)
            if rate:
                time.sleep(len(data) / rate)
    except OSError:
        pass
    for end in source, target:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

os.chdir(sys.argv[1])
here = socket.socket(socket.AF_UNIX)
here.bind(".s.PGSQL.5432")
here.listen()
while True:
    near, far = here.accept()[0], socket.socket(socket.AF_UNIX)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    far.connect(sys.argv[2])
    threading.Thread(target=copy, args=(near, far, 80 << 10), daemon=True).start()
    threading.Thread(target=copy, args=(far, near, 0), daemon=True).start()
' "$dir/slow" "$postgres_dir/.s.PGSQL.5432" </dev/null >"$dir/slow.log" 2>&1 &
started+=($!)
await "the slow link" test -S "$dir/slow/.s.PGSQL.5432"

shared="postgresql:///postgres?host=$dir/slow&user=muster"
sharer_start a
sharer_is_active a
holds "bytes that its start sent" "$(asked "SELECT sum(octet_length(data)) FROM muster_snapshot")" -gt 131072
same "questions that were given up" "$(times_said a 'no answer in time')" 0
job=slow saved=0
ranks_start 2 --steps 30 --barrier 1 --step-ms 1
all_finished 30
same "starts of it" "$(times_said a 'is ready')" 1
sharer_stop a
finish "a broker works over a link that is slow"
