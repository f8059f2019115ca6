/* save_text - a save under way in words; see save_watch.h. */
#include "tools/progress.h"
#include "tools/render.h"
#include "tools/run/save_watch.h"

#include <inttypes.h>
#include <stdio.h>

static void save_text_amount_text(const struct save_news *news, char *text, size_t size)
{
    char bytes[120];

    if (news->bytes > 0 && news->of > 0)
        progress_text(bytes, sizeof bytes, PROGRESS_BYTES, news->bytes,
                      news->of > news->bytes ? news->of : news->bytes, news->passed_ms);
    else if (news->bytes > 0)
        snprintf(bytes, sizeof bytes, "%s", render_bytes(news->bytes).text);
    else
        snprintf(bytes, sizeof bytes, "%s so far", render_duration(news->passed_ms).text);
    snprintf(text, size, "%s (%" PRId64 " of %" PRId64 " shard%s)", bytes, news->saved,
             news->writers, news->writers == 1 ? "" : "s");
}

void save_watch_text(const struct save_news *news, char *text, size_t size)
{
    char amount[160];

    save_text_amount_text(news, amount, sizeof amount);
    snprintf(text, size, "save at step %" PRId64 ": %s", news->step, amount);
}

void save_watch_bar(const struct save_news *news, char *text, size_t size, int width)
{
    static const char full[] = "################", empty[] = "----------------";
    const int length = (int)sizeof full - 1;
    double share = news->writers > 0 ? (double)news->saved / (double)news->writers : 0;
    char amount[160];
    int part;

    if (news->bytes > 0 && news->of > 0)
        share = (double)news->bytes / (double)news->of;
    part = (int)((share > 1 ? 1 : share) * length);
    save_text_amount_text(news, amount, sizeof amount);
    snprintf(text, (size_t)width < size ? (size_t)width : size,
             "save at step %" PRId64 " [%.*s%.*s] %s", news->step, part, full, length - part, empty,
             amount);
}
