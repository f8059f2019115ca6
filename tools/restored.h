/* restored - launches that could not restore what they were told to: which one still stands in the
 * way, and why. */
#ifndef TOOLS_RESTORED_H
#define TOOLS_RESTORED_H

#include <muster/client.h>

/* It is over and began no step, for whatever reason. */
bool restored_nothing_begun(const struct muster_generation_row *generation);

/* The newest of the first `count` launches that could not restore, if no step was begun since;
 * NULL: there is none. */
const struct muster_generation_row *restored_in_the_way(const muster_rows_t *generations,
                                                        size_t count);

/* Why, in whole if that is known: the text of the end may be cut. */
const char *restored_text(const struct muster_generation_row *failed);

/* The checkpoint was read, and the program could not take it: no older one is tried for that. */
bool restored_does_not_fit(const struct muster_generation_row *failed);

#endif
