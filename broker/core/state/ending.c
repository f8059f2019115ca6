/* ending - a launch begins to end: its first error, its status, and that nothing more is wanted of
 * it. Any code that finds a reason calls it, and settle.c derives what follows. */
#include "broker/core/state/state.h"

#include <stdio.h>

void round_want_nothing(struct job *job)
{
    job->want = (struct want){CAUSE_NONE, 0, false};
}

void grace_forget(struct job *job)
{
    memset(&job->plan, 0, sizeof job->plan);
}

void generation_set_first_error(struct core *core, struct job *job, int64_t rank, int64_t code,
                                const char *text)
{
    if (job->gen.error_rank >= 0)
        return;
    job->gen.error_rank = rank;
    job->gen.error_code = code;
    free(job->gen.error_text);
    job->gen.error_text = strdup(text);
    MUST(job->gen.error_text != NULL);
    persist_generation(core, job);
}

/* As much as there is room for, to the end of a word; it is whole in the event that led to the end.
 */
static void ending_set_text(struct job *job, const char *text)
{
    static const char rest[] = " ... (`muster events` has it whole)";
    size_t room = sizeof job->gen.end_text - sizeof rest, length = strlen(text), word;

    if (length < sizeof job->gen.end_text) {
        memcpy(job->gen.end_text, text, length + 1);
        return;
    }
    for (word = room; word > 0 && text[word] != ' '; word--)
        ;
    while (word == 0 && ((unsigned char)text[room] & 0xc0) == 0x80) /* inside a character */
        room--;
    snprintf(job->gen.end_text, sizeof job->gen.end_text, "%.*s%s", (int)(word > 0 ? word : room),
             text, rest);
}

void generation_ending(struct core *core, struct job *job, unsigned status, const char *text)
{
    if (generation_is_over(job))
        return;
    generation_move(&job->gen, GENERATION_ENDING);
    job->gen.ending_boot_ms = core->now;
    job->gen.ending_unix_ms = core->now_unix;
    job->gen.end_status = status;
    ending_set_text(job, text);
    job->state_unix_ms = core->now_unix;
    round_want_nothing(job);
    grace_forget(job);
    persist_generation(core, job);
    persist_job(core, job);
    job_timer(job, core->now);
}
