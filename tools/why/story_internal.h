/* story_internal - what the parts of a story share: story.c (notices), story_round.c,
 * story_ranks.c, story_cost.c (outcome). */
#ifndef TOOLS_STORY_INTERNAL_H
#define TOOLS_STORY_INTERNAL_H

#include "tools/render.h"
#include "tools/why/story.h"

#include <inttypes.h>
#include <string.h>

/* Adds one sentence. */
void story_say(struct story *story, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, for one that ends with a text of the broker's: the full stop is added if it lacks one.
 */
void story_say_text(struct story *story, const char *text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct who {
    char text[320];
};
/* "rank 2 (host h, pid 7)"; the rest is left out as far as it is unknown. */
struct who story_who(int64_t rank, const char *host, int64_t pid);
/* The same for a member of any of the story's rounds. */
struct who story_member(const struct story *story, int64_t rank);
struct shown story_at(const struct story *story, int64_t unix_ms); /* a time of day */

const struct muster_round_row *story_last_round(const struct story *story); /* NULL: no round */

bool story_all_withdrawn(const struct story *story); /* it had notices, and none of them stands */

bool story_broker_was_away(const struct story *story, int64_t from_unix_ms, int64_t until_unix_ms);
/* The incidents of the broker while the round was open. */
void story_broker(struct story *story, const struct muster_round_row *round);
bool story_is_over(
    const struct story *story); /* its launch is ending, or has ended: no round follows */

/* How the ranks stand now. */
bool story_is_stuck(const struct story *story); /* somebody is */
void story_stuck(struct story *story);          /* names whoever is */
bool story_came_out(const struct story *story, const struct muster_event_row *stuck);
/* The rank that was lost before this failure was told, so that it is likely to be its cause; -1:
 * none. */
int64_t story_lost_before(const struct story *story, const struct muster_event_row *failure);
/* Says so, after the failure. */
void story_blame(struct story *story, const struct muster_event_row *failure);
struct who story_trains_on(const struct story *story);

/* The events of round number index of the story. */
void story_round(struct story *story, size_t index);

/* All took an older checkpoint than the one that a rank could not restore: told once, behind the
 * last such failure
 * (`told` is the incident just told), or at the end (NULL). */
void story_fell_back(struct story *story, const struct muster_event_row *told);

/* From where the job goes on, and which steps that costs. */
void story_cost(struct story *story);

#endif
