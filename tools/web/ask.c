/* ask - the questions of all connections to the one client, one after another. Their answers are
 * kept for a moment, so many pages and a hasty scraper cost the broker no more than one page. */
#include "tools/web/web.h"

#include "node/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static bool ask_is_over(void *arg)
{
    return ((struct web *)arg)->stopping;
}

/* A database that was replaced is another file under its name: it is opened again. */
static int ask_check_place(struct web *web)
{
    struct muster_error err = {.status = MUSTER_OK};
    struct tool *tool = web->tool;
    enum muster_status status;
    struct stat info;
    bool is_file = strstr(tool->place, "://") == NULL;

    if (tool->client != NULL &&
        (!is_file || (stat(tool->place, &info) == 0 && info.st_dev == web->device &&
                      info.st_ino == web->inode)))
        return TOOL_DONE;
    muster_client_close(&tool->client, NULL);
    if (is_file && stat(tool->place, &info) == 0) {
        web->device = info.st_dev;
        web->inode = info.st_ino;
    }
    status = muster_client_open(tool->place, tool->timeout_ms, &tool->client, &err);
    if (status != MUSTER_OK)
        return tool_fail(TOOL_UNREACHABLE, "%s", err.text);
    muster_client_set_interrupted(tool->client, ask_is_over, web);
    return TOOL_DONE;
}

static void ask_unref(struct web_answer *answer)
{
    if (answer == NULL || --answer->references > 0)
        return;
    free(answer->body);
    free(answer);
}

/* Any thread may release an answer, but never during a question: one lock guards the counts. */
static pthread_mutex_t ask_counts = PTHREAD_MUTEX_INITIALIZER;

void web_release(struct web_answer *answer)
{
    pthread_mutex_lock(&ask_counts);
    ask_unref(answer);
    pthread_mutex_unlock(&ask_counts);
}

static struct web_answer *ask_ref(struct web_answer *answer)
{
    pthread_mutex_lock(&ask_counts);
    answer->references++;
    pthread_mutex_unlock(&ask_counts);
    return answer;
}

/* --- making ----------------------------------------------------------------------------------- */

/* Runs the question; web->said gets the error of one that failed. */
static int ask_run(struct web *web, web_make_fn *make, const struct web_request *request,
                   struct web_answer *answer)
{
    struct tool tool;
    int code;

    web->said[0] = '\0';
    tool_hear(web->said, sizeof web->said);
    code = ask_check_place(web);
    tool = *web->tool;

    tool.now_unix_ms = tool_now_unix_ms();
    tool.kept = true;
    tool.width = 0;
    tool.job[0] = '\0';
    memset(tool.values, 0, sizeof tool.values);
    if (request->job[0] != '\0')
        tool.values[OPTION_JOB] = request->job;
    tool.out = open_memstream(&answer->body, &answer->size);
    if (tool.out == NULL)
        code = tool_fail(TOOL_NO, "no memory for the answer");
    if (code == TOOL_DONE)
        code = make(web, &tool, request);
    tool_hear(NULL, 0);
    if (tool.out != NULL && fclose(tool.out) != 0)
        code = TOOL_NO;
    return code;
}

static struct web_answer *ask_make(struct web *web, web_make_fn *make,
                                   const struct web_request *request)
{
    struct web_answer *answer = calloc(1, sizeof *answer);
    const char *text = web->said;
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC);

    if (answer == NULL)
        return NULL;
    answer->references = 1;
    answer->code = ask_run(web, make, request, answer);
    answer->made_ms = clock_ms(CLOCK_MONOTONIC);
    answer->cost_ms = answer->made_ms - began_ms;
    if (answer->code == TOOL_UNREACHABLE) {
        snprintf(web->trouble, sizeof web->trouble, "%s", text);
        web->trouble_ms = answer->made_ms;
    } else {
        web->trouble[0] = '\0';
    }
    /* `muster latest --json` says no and yet answers. */
    if (answer->code == TOOL_NO && answer->size > 0 && text[0] == '\0')
        answer->code = TOOL_DONE;
    if (answer->code != TOOL_DONE) {
        free(answer->body);
        answer->body = strdup(text[0] != '\0' ? text : "no memory for the answer");
        answer->size = answer->body == NULL ? 0 : strlen(answer->body);
    }
    answer->hash = answer->body == NULL ? 0 : XXH3_64bits(answer->body, answer->size);
    return answer;
}

/* The answer while nobody waits for the broker. */
static struct web_answer *ask_broken(struct web *web)
{
    struct web_answer *answer = calloc(1, sizeof *answer);

    if (answer == NULL)
        return NULL;
    answer->references = 1;
    answer->code = TOOL_UNREACHABLE;
    answer->body = strdup(web->trouble);
    answer->size = answer->body == NULL ? 0 : strlen(answer->body);
    return answer;
}

/* --- keeping ---------------------------------------------------------------------------------- */

static void ask_drop(struct web *web, struct web_kept *kept)
{
    if (kept->answer == NULL)
        return;
    web->kept_bytes -= kept->answer->size;
    web_release(kept->answer);
    kept->answer = NULL;
}

static struct web_kept *ask_oldest(struct web *web, bool held)
{
    struct web_kept *oldest = NULL;

    for (size_t i = 0; i < WEB_KEPT_MAX; i++) {
        struct web_kept *kept = &web->kept[i];

        if (kept->answer == NULL) {
            if (!held)
                return kept;
        } else if (oldest == NULL || kept->used_ms < oldest->used_ms) {
            oldest = kept;
        }
    }
    return oldest;
}

static void ask_keep(struct web *web, const char *key, struct web_answer *answer)
{
    struct web_kept *place;

    if (answer->code != TOOL_DONE || strlen(key) >= sizeof place->key)
        return;
    while (web->kept_bytes + answer->size > WEB_KEPT_BYTES && ask_oldest(web, true) != NULL)
        ask_drop(web, ask_oldest(web, true));
    if (web->kept_bytes + answer->size > WEB_KEPT_BYTES)
        return;
    place = ask_oldest(web, false);
    ask_drop(web, place);
    snprintf(place->key, sizeof place->key, "%s", key);
    place->answer = ask_ref(answer);
    place->used_ms = answer->made_ms;
    web->kept_bytes += answer->size;
}

static struct web_kept *ask_find(struct web *web, const char *key)
{
    for (size_t i = 0; i < WEB_KEPT_MAX; i++)
        if (web->kept[i].answer != NULL && strcmp(web->kept[i].key, key) == 0)
            return &web->kept[i];
    return NULL;
}

static bool ask_is_fresh(const struct web_answer *answer, int64_t now_ms)
{
    int64_t fresh_ms = answer->cost_ms * 10;

    return now_ms - answer->made_ms < (fresh_ms < WEB_FRESH_MS ? WEB_FRESH_MS : fresh_ms);
}

static struct web_answer *ask_locked(struct web *web, const char *key, web_make_fn *make,
                                     const struct web_request *request)
{
    struct web_kept *kept = ask_find(web, key);
    int64_t now_ms = clock_ms(CLOCK_MONOTONIC);
    struct web_answer *answer;

    if (web->trouble[0] != '\0' && now_ms - web->trouble_ms < WEB_BROKEN_MS)
        return ask_broken(web);
    if (kept != NULL && ask_is_fresh(kept->answer, now_ms)) {
        kept->used_ms = now_ms;
        return ask_ref(kept->answer);
    }
    if (kept != NULL)
        ask_drop(web, kept);
    answer = ask_make(web, make, request);
    if (answer != NULL)
        ask_keep(web, key, answer);
    return answer;
}

struct web_answer *web_ask(struct web *web, const char *key, web_make_fn *make,
                           const struct web_request *request)
{
    struct web_answer *answer;

    pthread_mutex_lock(&web->lock);
    answer = ask_locked(web, key, make, request);
    pthread_mutex_unlock(&web->lock);
    return answer;
}

struct web_answer *web_order(struct web *web, web_make_fn *make, const struct web_request *request)
{
    struct web_answer *answer;

    pthread_mutex_lock(&web->lock);
    answer = ask_make(web, make, request);
    pthread_mutex_unlock(&web->lock);
    return answer;
}

void web_forget_all(struct web *web)
{
    for (size_t i = 0; i < WEB_KEPT_MAX; i++)
        ask_drop(web, &web->kept[i]);
}

int web_failed(enum muster_status status, const struct muster_error *err)
{
    return status == MUSTER_OK ? TOOL_DONE : tool_fail_status(status, err);
}
