/* callback - see callback.h. */
#include "node/notice/callback.h"

#include <stddef.h>

void callback_open(struct callback_source *source, bool (*ask)(void *arg), void *arg,
                   int64_t period_ms, int64_t now_boot_ms)
{
    *source = (struct callback_source){.ask = ask,
                                       .arg = arg,
                                       .period_ms = period_ms,
                                       .next_boot_ms = ask != NULL ? now_boot_ms : INT64_MAX};
}

void callback_poll(struct callback_source *source, int64_t now_boot_ms)
{
    if (now_boot_ms < source->next_boot_ms)
        return;
    source->next_boot_ms = now_boot_ms + source->period_ms;
    if (!source->ask(source->arg))
        return;
    source->fresh = true;
    source->next_boot_ms = INT64_MAX;
}

bool callback_take(struct callback_source *source)
{
    bool fresh = source->fresh;

    source->fresh = false;
    return fresh;
}
