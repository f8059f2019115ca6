#!/bin/bash
# A start that is refused for its port file leaves nothing behind; nor does an orderly end leave sockets.
. "$(dirname "$0")/../lib.sh"

mkdir -p "$dir/run" "$dir/state"
ipc="ipc://$dir/run/broker.sock"
code=0
answer=$(timeout 20 "$musterd" --db "$db" --listen "$ipc" --port-file "$dir/no such directory/port" 2>&1) || code=$?
same "exit code of musterd" "$code" 1
says "$answer" 'no such directory/port' --port-file
same "files of a refused start" "$(ls -A "$dir/run" "$dir/state" | grep -v : | xargs)" ''

listen=$ipc
broker_start
same "sockets" "$(ls "$dir/run" | xargs)" 'broker.sock broker.sock.events'
broker_stop
same "sockets after an orderly end" "$(ls -A "$dir/run")" ''
broker_start
mv "$dir/run/broker.sock" "$dir/run/moved" # somebody put something else in its place
: >"$dir/run/broker.sock"
broker_stop
same "what is not ours" "$(ls -A "$dir/run" | xargs)" 'broker.sock moved'
finish "a start refused for its port file leaves no socket and no database; an orderly end removes its own sockets alone"
