#!/bin/bash
# What a relay may be told wrong: each time a sentence that says what to do, and an exit code. A dead address is no error:
# the relay says so, and goes on as soon as a broker is there.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_relay.sh"

refused() { # CODE PATTERN OPTION... - it ends, and says that
    local code=0 expected=$1 pattern=$2

    shift 2
    timeout 60 "$musterd" "$@" >"$dir/refused.log" 2>&1 </dev/null || code=$?
    says "$(cat "$dir/refused.log")" "$pattern"
    same "exit code of musterd $*" "$code" "$expected"
}

one=$(relay_at one)
refused 2 'is where this relay itself listens: give it the broker.s address with --relay' --relay "$one" --listen "$one"
refused 2 'leads back to this relay' --relay "ipc://$dir//one.sock" --listen "$one"
refused 2 'a relay asks nobody for a key: use ipc' --relay "$ipc" --listen tcp://0.0.0.0:7700
refused 2 'use a path' --relay "$ipc" --listen ipc://@relay
refused 2 'has an empty broker.s address' --relay "$ipc,,$ipc" --listen "$one"
refused 2 'cannot connect to "nowhere".*write tcp://HOST:PORT or ipc:///PATH' --relay nowhere --listen "$one"
refused 2 '--sign is for a broker' --relay "$ipc" --sign
refused 2 '--shared is for a broker' --relay "$ipc" --shared postgresql://db/muster
refused 1 'there is no key file .*correct --key-file' --relay tcp://127.0.0.1:1 --key-file "$dir/none" --listen "$one"
refused 2 'itself listens' --relay "$one" --listen "$one" --check-config
touch "$dir/one.sock"
refused 1 'exists and is not a socket; remove it, or listen elsewhere' --relay "$ipc" --listen "$one"
rm "$dir/one.sock"

"$musterd" --relay "$ipc" --listen "$one" </dev/null >"$dir/one.log" 2>&1 &
relay_pid[one]=$!
started+=("$!")
await "the relay to say that nobody answers" relay_said one 'no broker answers at .*check that the address is right, and that musterd runs there'
refused 1 'another process listens' --relay "$ipc" --listen "$one"
listen=$ipc
broker_start
await "the relay to reach the broker" relay_said one 'answers$'
"$muster" status --broker "$one" >"$dir/status.log" || fail "muster status through the relay: exit code $?"
relay_stop one
finish "a relay with a wrong address, socket, key or option ends and says what to do; one without a broker waits for it"
