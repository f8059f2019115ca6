/* local_left - what a process without a broker leaves in its directory when it is killed in the
 * middle of a save: the file <root>/.muster/LONE names the round that is being written. Only one
 * such process can hold the file's lock, so whatever the file names then was left by a process that
 * is dead. Owns: that file and its lock. Never: a round that the file does not name, nor one of
 * another life (its nonce). */
#ifndef NODE_LOCAL_LEFT_H
#define NODE_LOCAL_LEFT_H

#include "node/local/local_state.h"

/* Takes the lock, and clears what is left: an unfinished round goes, a committed one is kept.
 * Without the lock (another such process lives, or the file system has none) nothing is cleared,
 * now or later. */
void local_left_open(struct local *local);
/* The round that is written from now on; end: none is. */
void local_left_begin(struct local *local, uint64_t round, uint64_t nonce);
void local_left_end(struct local *local);
void local_left_close(struct local *local);

#endif
