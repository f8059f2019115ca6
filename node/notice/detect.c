/* detect - see detect.h. */
#include "node/notice/detect.h"

#include "node/notice/base/http.h"
#include "node/notice/probe.h"
#include "node/notice/providers/platform.h"
#include "node/notice/watch_state.h"
#include "schema/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct detect {
    struct runner *runner;
    unsigned in_flight;
    int64_t next_boot_ms, last_ok_boot_ms;
    enum source_state state;
    char text[SOURCE_TEXT_MAX + 1];
};

enum muster_status detect_open(struct runner *runner, void **ret_self, struct muster_error *err)
{
    struct detect *detect = calloc(1, sizeof *detect);

    if (detect == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for notice source auto; free some");
    detect->runner = runner;
    detect->last_ok_boot_ms = -1;
    detect->state = SOURCE_PROBING;
    *ret_self = detect;
    return MUSTER_OK;
}

static void detect_conclude(struct detect *detect, enum source_state state, const char *name,
                            const char *rest)
{
    detect->state = state;
    detect->next_boot_ms = INT64_MAX;
    snprintf(detect->text, sizeof detect->text, "%s%s", name, rest);
}

static void detect_found(struct detect *detect, const char *name, const char *how,
                         const struct notice_now *now)
{
    struct runner *runner = detect->runner;
    const struct provider *provider = sources_provider_named(name);

    if (provider == NULL) {
        detect_conclude(detect, SOURCE_ABSENT, name, ": no source for it in this version");
        return;
    }
    detect->last_ok_boot_ms = now->boot_ms;
    detect_conclude(detect, SOURCE_HEALTHY, name, how);
    for (size_t i = 0; i < runner->slot_count; i++)
        if (strcmp(runner->slots[i]->name, name) == 0)
            return; /* it was named too */
    (void)watch_add_remote(runner->shared, runner, provider, NULL);
}

/* Where that cloud's service is, NULL: it is not to be asked. */
static const char *detect_endpoint_of(const struct shared *shared, const char *name)
{
    for (size_t i = 0; sources_provider(i) != NULL; i++)
        if (strcmp(sources_provider(i)->name, name) == 0) {
            if (shared->off[i])
                return NULL;
            return shared->endpoints[i][0] != '\0' ? shared->endpoints[i]
                                                   : sources_provider(i)->endpoint;
        }
    return NULL;
}

static void detect_probe(struct detect *detect)
{
    struct http_request *request = malloc(sizeof *request);

    for (unsigned i = 0; request != NULL && probe_source(i) != NULL; i++) {
        const char *endpoint = detect_endpoint_of(detect->runner->shared, probe_source(i));

        if (endpoint == NULL)
            continue;
        probe_request(i, endpoint, request);
        if (http_start(detect->runner->http, request, detect, i))
            detect->in_flight++;
    }
    free(request);
}

static void detect_look(struct detect *detect, const struct notice_now *now)
{
    struct platform_facts facts;
    const char *name;

    platform_read(detect->runner->shared->sys_prefix, &facts);
    name = platform_source(&facts);
    if (name != NULL)
        detect_found(detect, name, " is asked", now);
    else if (facts.dmi)
        detect_conclude(
            detect, SOURCE_ABSENT, "",
            "the machine's DMI names no cloud that is known; name the sources if there are any");
    else
        detect_probe(detect);
}

static void detect_take(struct detect *detect, const struct notice_now *now)
{
    struct http_reply reply;
    unsigned index;

    while (detect->in_flight > 0 && http_take(detect->runner->http, detect, &index, &reply)) {
        detect->in_flight--;
        if (!probe_proves(index, &reply))
            continue;
        http_abandon(detect->runner->http, detect);
        detect->in_flight = 0;
        detect_found(detect, probe_source(index),
                     " answered, and is asked from now on, although no DMI names it", now);
        return;
    }
    if (detect->in_flight > 0)
        return;
    detect_conclude(
        detect, SOURCE_ABSENT, "",
        "no DMI says whether this is a cloud, and no cloud answered; name the sources if there "
        "are any");
    detect->next_boot_ms = now->boot_ms + PROBE_AGAIN_MS;
}

static void detect_run(void *self, const struct notice_now *now, const struct source_out *out)
{
    struct detect *detect = self;

    (void)out; /* what is found says it */
    if (detect->in_flight > 0)
        detect_take(detect, now);
    else if (now->boot_ms >= detect->next_boot_ms) {
        detect->next_boot_ms = now->boot_ms + PROBE_AGAIN_MS;
        detect_look(detect, now);
        if (detect->in_flight == 0 && detect->state == SOURCE_PROBING)
            detect_take(detect, now); /* nobody could be asked */
    }
}

static int64_t detect_wakeup_boot_ms(const void *self)
{
    return ((const struct detect *)self)->next_boot_ms;
}

static void detect_status(const void *self, struct source_status *ret_status)
{
    const struct detect *detect = self;

    ret_status->state = detect->state;
    ret_status->last_ok_boot_ms = detect->last_ok_boot_ms;
    ret_status->retry_boot_ms = detect->next_boot_ms == INT64_MAX ? -1 : detect->next_boot_ms;
    memcpy(ret_status->text, detect->text, sizeof detect->text);
}

static void detect_close(void *self)
{
    struct detect *detect = self;

    http_abandon(detect->runner->http, detect);
    free(detect);
}

const struct source_ops detect_ops = {.run = detect_run,
                                      .wakeup_boot_ms = detect_wakeup_boot_ms,
                                      .status = detect_status,
                                      .close = detect_close};
