#!/bin/sh
# layers.sh [ROOT] - walks the include graph and fails on every arrow that the layering does not allow:
#
#   schema <- fenced <- broker      schema <- node <- client <- tools, tests      nothing but tests includes broker
#   fenced <- client/query/dbread_shared
#
# Inside broker/core: contract <- state <- checkpoints, tasks <- rounds <- members <- what is in broker/core
# itself; of tasks, members knows queues.h.
#
# No folders include each other, on whatever way: their includes make no circle.
#
# It fails, too, on a library's header outside the one place it belongs to. <muster/status.h> and <muster/status.def> are
# schema's; every other <muster/...> is client's. Each finding is one line: FILE:LINE: what is wrong.
set -eu
cd "${1:-${SOURCE_DIR:-$(dirname "$0")/../..}}"

list=$(mktemp)
trap 'rm -f "$list"' EXIT
for folder in schema fenced broker node client tools tests; do
    if [ -d "$folder" ]; then
        find "$folder" -type f \( -name '*.[ch]' -o -name '*.def' \)
    fi
done | grep -v '^tests/install/' | LC_ALL=C sort >"$list"

awk -v list="$list" '
function wrong(text) { printf "%s:%d: %s\n", file, line, text; bad++ }
function exists(path) { return path in known }
function where(path) { sub(/\/[^\/]*$/, "", path); return path } # its folder, to the last
function folder_of(path) { return substr(path, 1, index(path, "/") - 1) }

# The layer of a file: its folder, or the two pure cores and what only users\047 headers may serve: examples and Python.
function layer_of(path) {
    if (match(path, /^broker\/core\/[a-z]+\//)) return substr(path, 1, RLENGTH - 1)
    if (path ~ /^(broker|node)\/core\//) return folder_of(path) "/core"
    if (path ~ /^client\/(examples|python)\//) return "examples"
    if (path ~ /^client\/include\//) return "client/include"
    return folder_of(path)
}
function normal(path,   parts, count, i, out, depth) { # a/../b -> b
    count = split(path, parts, "/"); depth = 0
    for (i = 1; i <= count; i++) {
        if (parts[i] == "." || parts[i] == "") continue
        if (parts[i] == ".." && depth > 0) depth--
        else stack[++depth] = parts[i]
    }
    out = stack[1]
    for (i = 2; i <= depth; i++) out = out "/" stack[i]
    return out
}
function check_ours(target) {
    to = layer_of(target)
    if (where(file) != where(target) && from != "tests" && !((where(file), where(target)) in arrows))
        arrows[where(file), where(target)] = file ":" line ": " where(file) " and " where(target) \
            " are in a circle of folders (" target ")"
    if (index(allowed[from], " " to " ") == 0)
        wrong(from " must not include " to " (" target ")")
    if (from == "client" && to == "fenced" && file !~ /^client\/query\/dbread/)
        wrong("of client only query/dbread* includes fenced (" target ")")
}
# What no arrow comes to or goes from is in no circle; what is left when that was taken away, again and again, is.
function circles(   arrow, ends, into, out, taken) {
    do {
        delete into; delete out
        for (arrow in arrows) { split(arrow, ends, SUBSEP); out[ends[1]]; into[ends[2]] }
        taken = 0
        for (arrow in arrows) {
            split(arrow, ends, SUBSEP)
            if (!(ends[1] in into) || !(ends[2] in out)) { delete arrows[arrow]; taken++ }
        }
    } while (taken > 0)
    for (arrow in arrows) { print arrows[arrow]; bad++ }
}
function check_quoted(name,   beside) {
    beside = file; sub(/[^\/]*$/, "", beside); beside = normal(beside name)
    if (public_header && name != "status.def")
        wrong("a public header includes <muster/...> and standard headers only, not \"" name "\"")
    else if (exists(beside)) check_ours(beside)
    else if (exists(normal(name))) check_ours(normal(name))
    else if (file ~ /^tests\// && name ~ /^mutants\//) return # made of a product file by tests/mutants/NAME.patch
    else wrong("no such file: \"" name "\"")
}
function check_system(name) {
    if (name ~ /^muster\/status\.(h|def)$/) return # public, and schema\047s: everybody may
    if (name ~ /^muster\//) { check_ours("client/include/" name); return }
    if (public_header && name !~ standard)
        wrong("a public header includes <muster/...> and standard headers only, not <" name ">")
    if ((from == "schema" || from ~ /\/core/) && name ~ impure)
        wrong(from " is pure: no socket, file, clock, thread, so no <" name ">")
    if (file ~ /^tests\//) return
    if (name ~ /^sqlite3/ && file !~ /^(broker\/store\/|fenced\/changes|client\/query\/dbread)/)
        wrong("<" name "> belongs to broker/store, fenced/changes and client/query/dbread* only")
    if (name ~ /^libpq/ && folder_of(file) != "fenced")
        wrong("<" name "> belongs to fenced only")
    if (name == "sodium.h" && file !~ /^(schema\/manifest\/sign|node\/shard\/checksum)\.c$/)
        wrong("<sodium.h> belongs to schema/manifest/sign.c and node/shard/checksum.c only")
    if (name ~ /^curl\// && file != "node/notice/base/http.c")
        wrong("<" name "> belongs to node/notice/base/http.c only")
    if (name == "czmq.h" && file !~ /^(broker\/(bus[^\/]*|main)\.[ch]|tools\/.*)$/)
        wrong("<czmq.h> belongs to broker/bus*, broker/main.c and tools only: its first socket replaces signal handlers")
    if (name ~ /^zmq/ && file !~ /^(broker\/(bus[^\/]*|main)\.[ch]|node\/link[^\/]*\.[ch]|client\/query\/[^\/]*|tools\/[^\/]*)$/)
        wrong("<" name "> belongs to broker/bus*, node/link*, client/query and tools only")
}

BEGIN {
    allowed["schema"] = " schema "
    allowed["broker/core/contract"] = " schema broker/core/contract "
    allowed["broker/core/state"] = allowed["broker/core/contract"] " broker/core/contract broker/core/state "
    allowed["broker/core/checkpoints"] = allowed["broker/core/state"] " broker/core/checkpoints "
    allowed["broker/core/tasks"] = allowed["broker/core/state"] " broker/core/tasks "
    allowed["broker/core/rounds"] = allowed["broker/core/checkpoints"] " broker/core/rounds "
    allowed["broker/core/members"] = allowed["broker/core/rounds"] " broker/core/members broker/core/tasks "
    allowed["broker/core"] = allowed["broker/core/members"] " broker/core "
    allowed["fenced"] = " schema fenced "
    allowed["broker"] = " schema fenced broker/core/contract broker "
    allowed["node/core"] = " schema node/core "
    allowed["node"] = " schema node/core node "
    allowed["client/include"] = " client/include "
    allowed["client"] = " schema fenced node/core node client client/include "
    allowed["examples"] = " client/include examples "
    allowed["tools"] = " schema node/core node client client/include tools "
    allowed["tests"] = allowed["broker/core"] " schema fenced broker node/core node client client/include examples tools tests "
    standard = "^(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|time|wchar|wctype)\\.h$"
    impure = "^(z?c?zmq|sqlite3|poll|pthread|signal|fcntl|unistd|time|dirent|threads|dlfcn|netdb|sys/|net/|netinet/|arpa/)"
    while ((getline path < list) > 0) { known[path] = 1; order[++files] = path }
    for (i = 1; i <= files; i++) {
        file = order[i]; from = layer_of(file); line = 0
        public_header = file ~ /^client\/include\// || file ~ /^schema\/status\.(h|def)$/
        while ((getline text < file) > 0) {
            line++
            if (text !~ /^[ \t]*#[ \t]*include/) continue
            includes++
            sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
            if (substr(text, 1, 1) == "\"") { split(text, part, "\""); check_quoted(part[2]) }
            else if (substr(text, 1, 1) == "<") { split(text, part, "[<>]"); check_system(part[2]) }
            else wrong("an include by macro cannot be followed: " text)
        }
        close(file)
    }
    circles()
    printf "%d includes in %d files, %d not allowed\n", includes, files, bad
    exit bad > 0
}' </dev/null
