/* progress - see progress.h. */
#include "tools/progress.h"

#include "tools/render.h"

#include "node/clock.h"

#include <stdlib.h>
#include <unistd.h>

#define PROGRESS_FIRST_MS 1000
#define PROGRESS_BAR_MS 200
#define PROGRESS_LINE_MS 10000
#define PROGRESS_BAR 30 /* characters */

static struct shown progress_amount(enum progress_unit unit, int64_t amount)
{
    return unit == PROGRESS_BYTES ? render_bytes(amount) : render_number(amount);
}

void progress_text(char *text, size_t size, enum progress_unit unit, int64_t done, int64_t all,
                   int64_t passed_ms)
{
    double rate = passed_ms > 0 ? (double)done * 1000 / (double)passed_ms : 0;
    int used = snprintf(text, size, "%s of %s", progress_amount(unit, done).text,
                        progress_amount(unit, all).text);

    if (rate < 1 || used < 0 || (size_t)used >= size)
        return;
    snprintf(text + used, size - (size_t)used, ", %s/s, %s left",
             progress_amount(unit, (int64_t)rate).text,
             render_duration(done >= all ? 0 : (int64_t)((double)(all - done) * 1000 / rate)).text);
}

void progress_begin(struct progress *progress, const char *what, enum progress_unit unit,
                    int64_t all)
{
    const char *first = getenv("MUSTER_TEST_PROGRESS_MS"); /* so that tests need not last long */
    int64_t now_ms = clock_ms(CLOCK_MONOTONIC);

    *progress = (struct progress){.what = what,
                                  .unit = unit,
                                  .all = all,
                                  .begun_ms = now_ms,
                                  .next_ms = now_ms + PROGRESS_FIRST_MS,
                                  .terminal = isatty(STDERR_FILENO) != 0};
    if (first != NULL && first[0] != '\0')
        progress->next_ms = now_ms + strtoll(first, NULL, 10);
}

void progress_at(struct progress *progress, int64_t done)
{
    int64_t now_ms = clock_ms(CLOCK_MONOTONIC);
    char text[160];
    int full;

    if (now_ms < progress->next_ms || progress->all <= 0)
        return;
    done = done > progress->all ? progress->all : done;
    progress_text(text, sizeof text, progress->unit, done, progress->all,
                  now_ms - progress->begun_ms);
    full = (int)((double)done * PROGRESS_BAR / (double)progress->all);
    if (progress->terminal)
        fprintf(stderr, "\r%s [%.*s%.*s] %s\033[K", progress->what, full,
                "##############################", PROGRESS_BAR - full,
                "------------------------------", text);
    else
        fprintf(stderr, "muster: %s: %s\n", progress->what, text);
    progress->shown = true;
    progress->next_ms = now_ms + (progress->terminal ? PROGRESS_BAR_MS : PROGRESS_LINE_MS);
}

void progress_end(struct progress *progress)
{
    if (progress->shown && progress->terminal)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
