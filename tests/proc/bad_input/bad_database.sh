#!/bin/bash
# A damaged database is refused and kept as it is; so is a file that is none. Of a directory that cannot be made it is
# said why.
. "$(dirname "$0")/../lib.sh"

# refuses PATTERN... - musterd does not start on $db, says why, and leaves the bytes as they are.
refuses() {
    local code=0 answer

    cp "$db" "$dir/before"
    answer=$(timeout 20 "$musterd" --db "$db" --listen "$ipc" --port-file "$dir/port" 2>&1) || code=$?
    same "exit code of musterd" "$code" 1
    says "$answer" "$db" "$@"
    cmp "$db" "$dir/before" || fail "musterd changed what it refused"
    say "$answer"
}

placeless() { # DIRECTORY REASON
    local code=0 answer

    answer=$(timeout 20 "$musterd" --db "$1/muster.db" --listen "$ipc" --port-file "$dir/port" 2>&1) || code=$?
    same "exit code of musterd without a place for its database" "$code" 1
    says "$answer" "MUSTER_E_IO: cannot create directory $1: $2; create it, or choose another place"
}
placeless /proc/none 'No such file or directory'
touch "$dir/file"
placeless "$dir/file" 'Not a directory'

broker_start
ranks_start 2 --steps 50 --save-every 10
ranks_end 0
broker_stop
cp "$db" "$dir/whole"
pages=$(($(stat -c %s "$db") / 4096))
for ((page = 2; page < pages; page += 3)); do
    dd if=/dev/urandom of="$db" bs=1 count=200 seek=$((page * 4096)) conv=notrunc 2>/dev/null
done
refuses 'damaged|malformed|corrupt'
head -c 5000 "$dir/whole" >"$db"
refuses 'damaged|malformed|corrupt'
printf 'this is no database, but somebody needs it' >"$db"
refuses 'not a SQLite database' 'left as it is' --db
cp "$dir/whole" "$db"
broker_start
ranks_start 2 --steps 60
saved=40
all_finished 60
finish "a damaged, a cut and a foreign file: refused with its path, nothing changed; the whole one is resumed from"
