/* announce - what the broker decided, as lines of its log.
 * Owns: which events a person who reads the log wants, and their wording. Only events that are
 * committed come here: the log never tells more than the database.
 * Never: decides, writes to the database, keeps anything. */
#ifndef BROKER_ANNOUNCE_H
#define BROKER_ANNOUNCE_H

#include "broker/core/contract/core.h"

/* One line for each event of a committed batch that tells of a launch, a node or a round. At most
 * 64 a batch, so that the loss of a whole cluster does not fill the log. core: how the job's
 * program counts its steps. */
void announce_batch(const struct actions *batch, const struct core *core);

/* A row that was loaded at the start: one line for a job that is not over. */
void announce_loaded(const struct record *row);

#endif
