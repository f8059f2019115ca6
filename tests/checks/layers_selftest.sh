#!/bin/bash
# layers_selftest.sh - layers.sh must be able to fail: one forbidden include at a time in a small tree.
set -eu
. "$(dirname "$0")/lib_selftest.sh"

plant() { # FILE LINE
    mkdir -p "$tree/$(dirname "$1")"
    printf '%s\n' "$2" >"$tree/$1"
}

clean_tree() {
    rm -rf "$tree"
    for file in schema/wire/wire.h schema/status.h broker/bus.h broker/core/contract/core.h broker/core/dispatch.h \
                broker/core/state/state.h broker/core/rounds/round.h broker/core/members/member.h node/gate.h \
                node/core/member.h client/manager.h client/include/muster/node.h tools/render.h \
                fenced/log.h; do
        plant "$file" '#include <stdint.h>'
    done
    plant broker/store/store.c '#include <sqlite3.h>'
    plant broker/bus.c '#include <czmq.h>'
    plant node/link.c '#include <zmq.h>'
    plant client/query/dbread.c '#include <sqlite3.h>'
    plant client/query/dbread_shared.c '#include "fenced/log.h"'
    plant broker/store/shared.c '#include "fenced/log.h"'
    plant client/node/node.c '#include "node/gate.h"'
    plant client/examples/train.c '#include <muster/node.h>'
    plant node/agent/agent.h '#include "node/gate.h"'
    plant node/agent/agent.c '#include <muster/status.h>'
    plant tests/unit/test_x.c '#include "broker/core/rounds/round.h"'
}

refuses() { # FILE LINE WHAT_THE_FINDING_SAYS
    clean_tree
    plant "$1" "$2"
    must_refuse "$1 with $2" "^$1:1: .*$3" sh "$here/layers.sh" "$tree"
}

clean_tree
sh "$here/layers.sh" "$tree" || { echo "a tree without fault was refused"; failed=1; }
refuses schema/a.c '#include "node/gate.h"' 'schema must not include node'
refuses schema/a.c '#include <pthread.h>' 'schema is pure'
refuses broker/a.c '#include "node/gate.h"' 'broker must not include node'
refuses broker/core/a.c '#include "broker/bus.h"' 'broker/core must not include broker'
refuses broker/core/a.c '#include "../bus.h"' 'broker/core must not include broker'
refuses broker/core/a.c '#include <time.h>' 'broker/core is pure'
refuses broker/core/state/a.c '#include <time.h>' 'broker/core/state is pure'
refuses broker/core/state/a.c '#include "broker/core/rounds/round.h"' 'state must not include broker/core/rounds'
refuses broker/core/tasks/a.c '#include "broker/core/members/member.h"' 'tasks must not include broker/core/members'
refuses broker/core/rounds/a.c '#include "broker/core/dispatch.h"' 'rounds must not include broker/core'
refuses broker/loop.c '#include "broker/core/state/state.h"' 'broker must not include broker/core/state'
refuses broker/loop.c '#include <sqlite3.h>' 'belongs to broker/store'
refuses broker/loop.c '#include <zmq.h>' 'belongs to broker/bus'
refuses fenced/a.c '#include "broker/bus.h"' 'fenced must not include broker'
refuses fenced/a.c '#include <sqlite3.h>' 'belongs to broker/store'
refuses broker/store/a.c '#include <libpq-fe.h>' 'belongs to fenced only'
refuses client/a.c '#include "fenced/log.h"' 'of client only query/dbread'
refuses tools/a.c '#include "fenced/log.h"' 'tools must not include fenced'
refuses node/a.c '#include "broker/bus.h"' 'node must not include broker'
refuses node/a.c '#include "node/agent/agent.h"' 'node and node/agent are in a circle of folders'
refuses node/a.c '#include "client/manager.h"' 'node must not include client'
refuses node/a.c '#include <muster/node.h>' 'node must not include client/include'
refuses node/core/a.c '#include "node/gate.h"' 'node/core must not include node'
refuses node/agent/agent.c '#include <zmq.h>' 'belongs to broker/bus'
refuses node/link.c '  #  include <czmq.h>' 'czmq.h> belongs'
refuses client/python/a.c '#include "node/gate.h"' 'examples must not include node'
refuses client/a.c '#include "tools/render.h"' 'client must not include tools'
refuses client/a.c '#include "broker/bus.h"' 'client must not include broker'
refuses node/notice/providers/ec2.c '#include <curl/curl.h>' 'belongs to node/notice/base/http.c'
refuses client/a.c '#include <sqlite3.h>' 'belongs to broker/store'
refuses client/include/muster/a.h '#include "node/gate.h"' 'a public header includes'
refuses client/include/muster/a.h '#include <czmq.h>' 'a public header includes'
refuses client/examples/a.c '#include "node/gate.h"' 'examples must not include node'
refuses tools/a.c '#include "broker/bus.h"' 'tools must not include broker'
refuses tools/a.c '#include "tools/nowhere.h"' 'no such file'
refuses node/a.c '#include HEADER' 'include by macro'
[ "$failed" = 0 ] && echo "every forbidden arrow is refused"
exit "$failed"
