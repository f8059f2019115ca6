/* watch - --watch: a verb's answer on the whole terminal, asked for again and again. */
#include "tools/live/screen.h"
#include "tools/paint.h"
#include "tools/render.h"
#include "tools/tool.h"

#include "node/clock.h"

#include <stdlib.h>

#define WATCH_EVERY_MS 2000

struct watch {
    struct tool *tool;
    const struct tool_verb *verb;
    char *text;                           /* owned: the last answer */
    size_t first;                         /* line that is drawn first */
    char said[MUSTER_ERROR_TEXT_MAX * 2]; /* why there is no newer one */
};

static int watch_ask(struct watch *watch)
{
    struct tool tool = *watch->tool;
    char *text = NULL;
    size_t size = 0;
    int height, code;

    screen_size(&tool.width, &height);
    tool.now_unix_ms = tool_now_unix_ms();
    tool.kept = true;
    tool.out = open_memstream(&text, &size);
    if (tool.out == NULL)
        return tool_fail(TOOL_NO, "no memory for the answer");
    watch->said[0] = '\0';
    tool_hear(watch->said, sizeof watch->said);
    code = watch->verb->run(&tool);
    tool_hear(NULL, 0);
    if (fclose(tool.out) == 0 && code == TOOL_DONE) {
        free(watch->text);
        watch->text = text;
        watch->tool->now_unix_ms = tool.now_unix_ms;
    } else {
        free(text);
    }
    return code;
}

static int watch_draw(const struct watch *watch)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return tool_fail(TOOL_NO, "no memory for the picture");
    fprintf(out, "%smuster %s%s  %s  q ends\n", paint(PAINT_TITLE), watch->verb->name,
            paint(PAINT_PLAIN),
            render_clock(watch->tool->now_unix_ms, watch->tool->now_unix_ms).text);
    if (watch->said[0] != '\0')
        fprintf(out, "%s%s; what is shown is of %s%s\n", paint(PAINT_BAD), watch->said,
                render_age(watch->tool->now_unix_ms, tool_now_unix_ms()).text, paint(PAINT_PLAIN));
    fprintf(out, "\n%s", watch->text == NULL ? "" : watch->text);
    if (fclose(out) == 0)
        screen_draw(text, watch->first);
    free(text);
    return TOOL_DONE;
}

static void watch_scroll(struct watch *watch, int key)
{
    size_t lines = 0, by = 0;

    for (const char *at = watch->text; at != NULL && *at != '\0'; at++)
        lines += *at == '\n';
    if (key == SCREEN_UP || key == SCREEN_PAGE_UP)
        by = key == SCREEN_PAGE_UP ? 10 : 1;
    watch->first -= by < watch->first ? by : watch->first;
    if (key == SCREEN_DOWN || key == SCREEN_PAGE_DOWN)
        watch->first += key == SCREEN_PAGE_DOWN ? 10 : 1;
    if (watch->first > lines)
        watch->first = lines;
}

static int watch_go(struct watch *watch)
{
    int64_t next_ms = clock_ms(CLOCK_MONOTONIC) + WATCH_EVERY_MS;
    int key = SCREEN_NONE, code = TOOL_DONE;

    while (code == TOOL_DONE) {
        int64_t now_ms = clock_ms(CLOCK_MONOTONIC), cost_ms;

        if (now_ms >= next_ms || key == SCREEN_RESIZED) {
            watch_ask(watch);
            cost_ms = clock_ms(CLOCK_MONOTONIC) - now_ms;
            next_ms = now_ms + (10 * cost_ms > WATCH_EVERY_MS ? 10 * cost_ms : WATCH_EVERY_MS);
        }
        code = watch_draw(watch);
        key = screen_key(next_ms - clock_ms(CLOCK_MONOTONIC));
        if (key == SCREEN_END || key == 'q')
            break;
        watch_scroll(watch, key);
    }
    return code;
}

int tool_watch(struct tool *tool, const struct tool_verb *verb)
{
    struct watch watch = {.tool = tool, .verb = verb};
    int code;

    if (tool_json(tool) || tool->values[OPTION_EXIT_CODE] != NULL)
        return tool_fail(TOOL_USAGE,
                         "--watch draws for people, and %s is for programs: leave one of them out",
                         tool_json(tool) ? "--json" : "--exit-code");
    code = watch_ask(&watch); /* what is wrong from the start is told as without --watch */
    if (code != TOOL_DONE)
        return tool_fail(code, "%s", watch.said);
    code = screen_open("--watch");
    if (code == TOOL_DONE) {
        muster_client_set_interrupted(tool->client, screen_is_over, NULL);
        code = watch_go(&watch);
        screen_close();
    }
    free(watch.text);
    return code;
}
