/* self - what the broker reports about itself: the answer to the query "broker".
 * Owns: the names of the facts, which `muster broker --json` and a monitor read; names are only
 * added. Never: SQLite, a socket. */
#ifndef BROKER_SELF_H
#define BROKER_SELF_H

#include "broker/loop.h"

/* All borrowed for the call. */
struct self {
    const struct store *store;
    const struct bus *bus;
    const struct core *core;
    const struct loop_counters *loop;
    const char *blocked_by; /* NULL: the database can be written */
    int64_t started_unix_ms;
    int64_t now_unix_ms;
};

/* Gives each fact, in the order in which they are to be shown. If text is "", the fact is the
 * number. */
typedef void self_take_fn(void *arg, const char *name, int64_t number, const char *text);
void self_facts(const struct self *self, self_take_fn *take, void *arg);

/* The same as rows of {name, number, text}. */
void self_rows(const struct self *self, struct store_rows *ret_rows);

#endif
