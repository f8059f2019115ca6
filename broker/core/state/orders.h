/* orders - the journal's line for what an operator ordered: who, and what. The loop tells with the
 * input who gave it, since only it sees the connection: the name of a key, or the user of a local
 * socket. Never: decides whether an order may be given (authority.h). */
#ifndef BROKER_CORE_ORDERS_H
#define BROKER_CORE_ORDERS_H

#include "broker/core/state/state.h"

#define ORDER_WORDS_MAX 320

/* Before the order is taken, what is to stand in the journal if it changes something. False: it is
 * none, as the lease that a program takes while it reads. */
bool order_words(const struct job *job, const struct wire_msg *order, char ret[ORDER_WORDS_MAX]);

/* After the order: journals the event, if the step has changed rows since there were `actions`
 * actions. round: the round that the answer named, 0 = none. */
void order_journal(struct core *core, struct job *job, const char *by, const char *words,
                   uint64_t round, size_t actions);

/* Checkpoints come one a message: of a directory the first one is told. */
void order_import(struct core *core, struct job *job, const char *by, const char *directory);

/* A supervisor's word on its own processes, with a key: which ended, and which host comes. Of a
 * key, for another may hold it; a local user's word is in the rows that follow. */
void order_gone(struct core *core, struct job *job, const struct input *in);
void order_host(struct core *core, struct job *job, const struct input *in);

#endif
