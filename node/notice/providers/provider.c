/* provider - see provider.h. */
#include "node/notice/providers/provider.h"

#include "node/notice/base/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER INT64_MAX
#define SLOT_TOKEN PROVIDER_PATHS_MAX
#define SLOT_ACKNOWLEDGEMENT (PROVIDER_PATHS_MAX + 1)
#define TOKEN_AGAIN_MAX_MS 4000
#define SKEW_MS 5000 /* a Date header counts whole seconds, and the answer travels */

bool provider_init(struct provider_run *run, const struct provider *provider, const char *endpoint,
                   uint64_t seed, int64_t now_boot_ms)
{
    size_t length;

    memset(run, 0, sizeof *run);
    run->provider = provider;
    run->pace = (struct provider_pace){1, 1};
    run->seen_boot_ms = now_boot_ms;
    run->random = seed | 1;
    if (endpoint == NULL)
        endpoint = provider->endpoint;
    length = strlen(endpoint);
    while (length > 0 && endpoint[length - 1] == '/')
        length--;
    if (length >= sizeof run->endpoint || strncmp(endpoint, "http://", 7) != 0)
        return false;
    memcpy(run->endpoint, endpoint, length);
    for (size_t i = 0; i < provider->path_count; i++)
        run->paths[i] = (struct provider_asked){
            .state = SOURCE_PROBING, .next_boot_ms = now_boot_ms, .last_ok_boot_ms = -1};
    run->token = run->paths[0];
    return true;
}

void provider_set_pace(struct provider_run *run, struct provider_pace pace)
{
    run->pace.waits = pace.waits > 0 ? pace.waits : 1;
    run->pace.timeouts = pace.timeouts > 0 ? pace.timeouts : 1;
}

/* xorshift64*: a fifth up or down. */
static int64_t provider_jittered(struct provider_run *run, int64_t ms)
{
    uint64_t x = run->random;

    ms /= run->pace.waits;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    run->random = x;
    return ms - ms / 5 + (int64_t)((x >> 33) % (uint64_t)(ms * 2 / 5 + 1));
}

static bool provider_pending(const struct provider_run *run)
{
    for (size_t i = 0; i < run->provider->path_count; i++)
        if (run->paths[i].pending)
            return true;
    return false;
}

bool provider_has_token(const struct provider_run *run, int64_t now_boot_ms)
{
    return run->token_text[0] != '\0' && now_boot_ms < run->token_until_boot_ms;
}

static bool provider_wants_token(const struct provider_run *run, int64_t now_boot_ms)
{
    return run->provider->token_path != NULL && now_boot_ms >= run->token.next_boot_ms &&
           (!provider_has_token(run, now_boot_ms) || now_boot_ms >= run->token_refresh_boot_ms);
}

static bool provider_may_ask_paths(const struct provider_run *run, int64_t now_boot_ms)
{
    return run->provider->token_path == NULL || run->token_missing ||
           provider_has_token(run, now_boot_ms);
}

static bool provider_is_due(const struct provider_run *run, size_t index, int64_t now_boot_ms)
{
    const struct provider_asked *asked = &run->paths[index];
    unsigned after = run->provider->paths[index].after;

    return !asked->in_flight && now_boot_ms >= asked->next_boot_ms &&
           (after == 0 || run->paths[after - 1].well_once);
}

static void provider_begin(struct provider_asked *asked, int64_t now_boot_ms)
{
    asked->in_flight = true;
    asked->asked_boot_ms = now_boot_ms;
}

static void provider_make_request(const struct provider_run *run, struct http_request *request,
                                  const char *method, const char *path, const char *query,
                                  const char *etag)
{
    memset(request, 0, sizeof *request);
    request->method = method;
    request->connect_ms = run->provider->connect_ms;
    snprintf(request->url, sizeof request->url, "%s%s%s%s", run->endpoint, path, query, etag);
}

static void provider_ask_token(struct provider_run *run, int64_t now_boot_ms,
                               struct http_request *request)
{
    const struct provider *p = run->provider;

    provider_make_request(run, request, "PUT", p->token_path, "", "");
    request->timeout_ms = p->paths[0].timeout_ms / run->pace.timeouts;
    snprintf(request->headers[0], sizeof request->headers[0], "%s: %lld", p->token_ttl_header,
             (long long)p->token_ttl_s);
    provider_begin(&run->token, now_boot_ms);
}

static void provider_ask_path(struct provider_run *run, size_t index, int64_t now_boot_ms,
                              struct http_request *request)
{
    const struct provider *p = run->provider;
    const struct provider_path *path = &p->paths[index];
    struct provider_asked *asked = &run->paths[index];
    bool waits = path->wait_query != NULL, known = asked->etag[0] != '\0' && asked->failures == 0;
    bool first = path->first_timeout_ms > 0 && (waits ? !known : !asked->well_once);

    provider_make_request(run, request, "GET", path->path, waits ? path->wait_query : "",
                          !waits  ? ""
                          : known ? asked->etag
                                  : "0");
    request->timeout_ms = (first ? path->first_timeout_ms : path->timeout_ms) / run->pace.timeouts;
    if (p->header != NULL)
        snprintf(request->headers[0], sizeof request->headers[0], "%s", p->header);
    asked->token_serial = 0;
    if (provider_has_token(run, now_boot_ms)) {
        snprintf(request->headers[1], sizeof request->headers[1], "%s: %s", p->token_header,
                 run->token_text);
        asked->token_serial = run->token_serial;
    }
    provider_begin(asked, now_boot_ms);
}

/* --- acknowledging ---------------------------------------------------------------------------- */

void provider_allow_acknowledging(struct provider_run *run)
{
    run->acknowledges = run->provider->acknowledge != NULL;
}

void provider_committed(struct provider_run *run)
{
    run->committed = true;
}

static bool provider_was_acknowledged(const struct provider_run *run, const char *key)
{
    for (size_t i = 0; i < run->acknowledged_count; i++)
        if (strcmp(run->acknowledged[i], key) == 0)
            return true;
    return false;
}

/* An end that has not begun and was not acknowledged; NULL: none. */
static const struct notice_item *provider_to_acknowledge(const struct provider_run *run)
{
    if (!run->acknowledges || !run->committed ||
        run->acknowledged_count == PROVIDER_ACKNOWLEDGED_MAX)
        return NULL;
    for (size_t i = 0; i < run->announced.count; i++) {
        const struct notice_item *item = &run->announced.items[i];

        if (wire_notice_ends(item->kind) && item->cancellable &&
            !provider_was_acknowledged(run, item->key))
            return item;
    }
    return NULL;
}

bool provider_is_acknowledging(const struct provider_run *run)
{
    return provider_to_acknowledge(run) != NULL;
}

static void provider_acknowledge(struct provider_run *run, const struct notice_item *item,
                                 int64_t now_boot_ms, struct http_request *request)
{
    const struct provider *p = run->provider;
    const struct provider_path *path = &p->paths[p->acknowledge_slot];

    provider_make_request(run, request, "POST", path->path, "", "");
    request->timeout_ms = path->timeout_ms / run->pace.timeouts;
    snprintf(request->headers[0], sizeof request->headers[0], "%s", p->header);
    snprintf(request->headers[1], sizeof request->headers[1], "Content-Type: application/json");
    p->acknowledge(item, run->body);
    memcpy(run->acknowledging, item->key, sizeof item->key);
    request->body = run->body;
    provider_begin(&run->acknowledgement, now_boot_ms);
}

/* A refusal is an answer: it is not repeated. */
static void provider_take_acknowledgement(struct provider_run *run, const struct http_reply *reply,
                                          int64_t now_boot_ms)
{
    bool final = reply->result == HTTP_ANSWERED && reply->status < 500 && reply->status != 429 &&
                 reply->status != 410;

    run->acknowledgement.next_boot_ms = now_boot_ms + PROVIDER_BACKOFF_MS / run->pace.waits;
    if (final && run->acknowledged_count < PROVIDER_ACKNOWLEDGED_MAX)
        memcpy(run->acknowledged[run->acknowledged_count++], run->acknowledging,
               sizeof run->acknowledging);
}

bool provider_next(struct provider_run *run, int64_t now_boot_ms, struct http_request *ret_request,
                   unsigned *ret_slot)
{
    const struct notice_item *item = provider_to_acknowledge(run);

    run->seen_boot_ms = now_boot_ms;
    if (item != NULL && !run->acknowledgement.in_flight &&
        now_boot_ms >= run->acknowledgement.next_boot_ms) {
        provider_acknowledge(run, item, now_boot_ms, ret_request);
        *ret_slot = SLOT_ACKNOWLEDGEMENT;
        return true;
    }
    if (provider_wants_token(run, now_boot_ms) && !run->token.in_flight) {
        provider_ask_token(run, now_boot_ms, ret_request);
        *ret_slot = SLOT_TOKEN;
        return true;
    }
    if (!provider_may_ask_paths(run, now_boot_ms))
        return false;
    for (size_t i = 0; i < run->provider->path_count; i++)
        if (provider_is_due(run, i, now_boot_ms)) {
            provider_ask_path(run, i, now_boot_ms, ret_request);
            *ret_slot = (unsigned)i;
            return true;
        }
    return false;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void provider_well(struct provider_asked *asked, int64_t now_boot_ms)
{
    asked->state = SOURCE_HEALTHY;
    asked->well_once = true;
    asked->renewed = false;
    asked->failures = asked->denied = 0;
    asked->last_ok_boot_ms = now_boot_ms;
    asked->text[0] = '\0';
}

static int64_t provider_interval(const struct provider_run *run, const struct provider_path *path)
{
    return (path->interval_ms > 0 ? path->interval_ms : PROVIDER_BACKOFF_MS) / run->pace.waits;
}

/* From asking to asking, for a long poll at once. */
static void provider_next_by_interval(struct provider_asked *asked, int64_t interval_ms,
                                      int64_t now_boot_ms)
{
    asked->next_boot_ms = asked->asked_boot_ms + interval_ms;
    if (asked->next_boot_ms < now_boot_ms)
        asked->next_boot_ms = now_boot_ms;
}

static void provider_back_off(struct provider_run *run, struct provider_asked *asked,
                              int64_t now_boot_ms)
{
    bool there = asked->well_once || asked->state == SOURCE_DEGRADED;
    int64_t most = there && run->provider->backoff_max_ms > 0 ? run->provider->backoff_max_ms
                                                              : PROVIDER_BACKOFF_MAX_MS;
    int64_t delay = PROVIDER_BACKOFF_MS;

    for (unsigned i = 1; i < asked->failures && delay < most; i++)
        delay *= 2;
    if (provider_pending(run))
        delay = PROVIDER_BACKOFF_MS;
    asked->next_boot_ms = now_boot_ms + provider_jittered(run, delay < most ? delay : most);
}

static void provider_fail(struct provider_run *run, struct provider_asked *asked,
                          enum source_state state, int64_t now_boot_ms, const char *text)
{
    asked->failures++;
    asked->state = state;
    snprintf(asked->text, sizeof asked->text, "%s", text);
    provider_back_off(run, asked, now_boot_ms);
}

/* Filtered, misconfigured, or another's service: after some times asked rarely. A service that has
 * worked is there, and may work again within an end's short time. */
static void provider_deny(struct provider_run *run, struct provider_asked *asked,
                          int64_t now_boot_ms, const char *text)
{
    provider_fail(run, asked, SOURCE_DEGRADED, now_boot_ms, text);
    if (asked->well_once || ++asked->denied < PROVIDER_DENIED_MAX)
        return;
    asked->state = SOURCE_ABSENT;
    asked->next_boot_ms = now_boot_ms + provider_jittered(run, PROVIDER_RARELY_MS);
}

static void provider_fail_transport(struct provider_run *run, struct provider_asked *asked,
                                    const struct http_reply *reply, int64_t now_boot_ms)
{
    bool nobody = reply->result == HTTP_REFUSED || reply->result == HTTP_TIMEOUT;
    char text[SOURCE_TEXT_MAX + 1];

    snprintf(text, sizeof text, "%s", reply->error != NULL ? reply->error : "no answer");
    provider_fail(run, asked, nobody && !asked->well_once ? SOURCE_ABSENT : SOURCE_DEGRADED,
                  now_boot_ms, text);
}

static void provider_fail_status(struct provider_run *run, struct provider_asked *asked, int status,
                                 int64_t now_boot_ms)
{
    char text[64];

    snprintf(text, sizeof text, "it answered %d", status);
    if (status == 400 || status == 403 || status == 405 || (status >= 300 && status < 400))
        provider_deny(run, asked, now_boot_ms, text);
    else
        provider_fail(run, asked, SOURCE_DEGRADED, now_boot_ms, text);
}

static bool provider_token_ok(const struct http_reply *reply)
{
    if (reply->size == 0 || reply->size > PROVIDER_TOKEN_MAX)
        return false;
    for (size_t i = 0; i < reply->size; i++)
        if (reply->body[i] <= ' ' || reply->body[i] > '~')
            return false;
    return true;
}

static bool provider_take_token_text(struct provider_run *run, const struct http_reply *reply,
                                     int64_t now_boot_ms)
{
    char header[32];
    int64_t ttl_ms;
    bool told = http_header(reply, run->provider->token_ttl_header, header, sizeof header);

    if (!provider_token_ok(reply) || (!told && run->provider->token_ttl_told))
        return false;
    ttl_ms = told ? strtoll(header, NULL, 10) * 1000 : 0;
    if (ttl_ms < 1000 || ttl_ms > run->provider->token_ttl_s * 1000)
        ttl_ms = run->provider->token_ttl_s * 1000;
    memcpy(run->token_text, reply->body, reply->size);
    run->token_text[reply->size] = '\0';
    run->token_serial++;
    run->token_missing = false;
    run->proved = true;
    run->token_until_boot_ms = now_boot_ms + ttl_ms;
    run->token_refresh_boot_ms = run->token_until_boot_ms - ttl_ms / 10;
    run->token.next_boot_ms = now_boot_ms;
    return true;
}

/* Where one was ever given, another can be: a slow answer must not cost the two minutes of a
 * notice. */
static void provider_token_again(struct provider_run *run, int64_t now_boot_ms)
{
    int64_t delay = PROVIDER_BACKOFF_MS;

    for (unsigned i = 1; i < run->token.failures && delay < TOKEN_AGAIN_MAX_MS; i++)
        delay *= 2;
    if (!run->token.well_once)
        delay = PROVIDER_RARELY_MS;
    run->token.next_boot_ms = now_boot_ms + provider_jittered(run, delay);
}

/* A token that does not come in time may be one that cannot: its reply has a short life on the way
 * into a container. Then, and where nobody knows tokens, asking without one is tried. */
static void provider_take_token(struct provider_run *run, const struct http_reply *reply,
                                int64_t now_boot_ms)
{
    struct provider_asked *token = &run->token;

    if (reply->result == HTTP_TIMEOUT ||
        (reply->result == HTTP_ANSWERED && (reply->status == 404 || reply->status == 405))) {
        provider_fail(run, token, token->well_once ? SOURCE_DEGRADED : SOURCE_ABSENT, now_boot_ms,
                      "no token is given");
        provider_token_again(run, now_boot_ms);
        run->token_missing = true;
        if (provider_has_token(run, now_boot_ms)) /* it was a renewal: the old one is good still */
            run->token_missing = false;
    } else if (reply->result != HTTP_ANSWERED)
        provider_fail_transport(run, token, reply, now_boot_ms);
    else if (reply->status != 200)
        provider_fail_status(run, token, reply->status, now_boot_ms);
    else if (provider_take_token_text(run, reply, now_boot_ms))
        provider_well(token, now_boot_ms);
    else
        provider_deny(run, token, now_boot_ms, "another service answers there: it gives no token");
}

static void provider_drop_token(struct provider_run *run, int64_t now_boot_ms)
{
    run->token_text[0] = '\0';
    run->token.next_boot_ms = now_boot_ms;
}

static void provider_take_401(struct provider_run *run, struct provider_asked *asked,
                              int64_t now_boot_ms)
{
    if (run->token_missing) { /* required, and out of reach */
        run->token_missing = false;
        asked->next_boot_ms = now_boot_ms;
        run->token.state = run->token.well_once ? SOURCE_DEGRADED : SOURCE_ABSENT;
        snprintf(run->token.text, sizeof run->token.text,
                 "a token is required, and asking for one is not answered%s",
                 run->token.well_once ? "" : " (hop limit?)");
        provider_token_again(run, now_boot_ms);
        return;
    }
    if (asked->token_serial != 0 && asked->token_serial == run->token_serial)
        provider_drop_token(run, now_boot_ms);
    if (!asked->renewed && run->provider->token_path != NULL) {
        asked->renewed = true;
        asked->next_boot_ms = now_boot_ms;
        return;
    }
    asked->renewed = false;
    provider_fail(run, asked, SOURCE_DEGRADED, now_boot_ms, "it answered 401 to a new token");
}

static struct notice_now provider_clock_of(const struct http_reply *reply,
                                           const struct notice_now *now)
{
    struct notice_now theirs = *now;
    char date[64];
    int64_t unix_ms;

    if (http_header(reply, "Date", date, sizeof date) && times_rfc1123(date, &unix_ms) &&
        llabs(unix_ms - now->unix_ms) > SKEW_MS)
        theirs.unix_ms = unix_ms;
    return theirs;
}

static void provider_remember_etag(struct provider_asked *asked, const struct http_reply *reply)
{
    char etag[sizeof asked->etag];

    asked->etag[0] = '\0';
    if (!http_header(reply, "ETag", etag, sizeof etag))
        return;
    for (const char *c = etag; *c != '\0'; c++)
        if (strchr("0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ-_.", *c) == NULL)
            return; /* it goes into a URL */
    memcpy(asked->etag, etag, sizeof etag);
}

static bool provider_take_200(struct provider_run *run, unsigned slot,
                              const struct http_reply *reply, const struct notice_now *now,
                              struct notice_set *ret_set)
{
    const struct provider_path *path = &run->provider->paths[slot];
    struct provider_asked *asked = &run->paths[slot];
    char why[SOURCE_TEXT_MAX + 1] = "its answer cannot be read";
    const struct provider_context context = {
        .now = provider_clock_of(reply, now), .memory = run->memory, .why = why};
    enum parse_result result = path->parse(reply, &context, ret_set);

    if (result == PARSE_FOREIGN)
        provider_deny(run, asked, now->boot_ms, "another service answers there");
    if (result == PARSE_GARBAGE) {
        provider_fail(run, asked, SOURCE_DEGRADED, now->boot_ms, why);
        provider_next_by_interval(asked, provider_interval(run, path), now->boot_ms);
    }
    if (result != PARSE_OK)
        return false;
    provider_remember_etag(asked, reply);
    provider_well(asked, now->boot_ms);
    run->proved = true;
    asked->pending = false;
    for (size_t i = 0; i < ret_set->count; i++)
        if (wire_notice_ends(ret_set->items[i].kind))
            asked->pending = true;
    provider_next_by_interval(asked, provider_interval(run, path), now->boot_ms);
    if (path->interval_ms == 0)
        asked->next_boot_ms = NEVER;
    if (run->acknowledges && slot == run->provider->acknowledge_slot)
        run->announced = *ret_set;
    return true;
}

/* Where no token is given, 404 to everything is what any web server says. It is asked on all the
 * same. */
static bool provider_is_proved(struct provider_run *run, const struct http_reply *reply)
{
    run->proved = run->proved || run->provider->is_ours_tokenless == NULL ||
                  run->provider->is_ours_tokenless(reply);
    return run->proved;
}

static bool provider_take_404(struct provider_run *run, unsigned slot,
                              const struct http_reply *reply, int64_t now_boot_ms)
{
    const struct provider_path *path = &run->provider->paths[slot];
    struct provider_asked *asked = &run->paths[slot];
    bool proved = provider_is_proved(run, reply);

    if (path->missing_is_absent) {
        provider_deny(run, asked, now_boot_ms, "it answered 404: this key is not served here");
        return false;
    }
    if (proved)
        provider_well(asked, now_boot_ms);
    else
        provider_fail(run, asked, SOURCE_DEGRADED, now_boot_ms,
                      "it gives no token, and 404 is what any server answers: nothing shows that "
                      "it is this cloud's service");
    asked->pending = false;
    provider_next_by_interval(asked, provider_interval(run, path), now_boot_ms);
    return proved;
}

static bool provider_take_answer(struct provider_run *run, unsigned slot,
                                 const struct http_reply *reply, const struct notice_now *now,
                                 struct notice_set *ret_set)
{
    struct provider_asked *asked = &run->paths[slot];

    if ((reply->status == 200 || reply->status == 404) && run->provider->is_ours != NULL &&
        !run->provider->is_ours(reply)) {
        provider_deny(run, asked, now->boot_ms, "another service answers there");
        return false;
    }
    switch (reply->status) {
    case 200:
        return provider_take_200(run, slot, reply, now, ret_set);
    case 401:
        provider_take_401(run, asked, now->boot_ms);
        return false;
    case 404:
        return provider_take_404(run, slot, reply, now->boot_ms);
    default:
        provider_fail_status(run, asked, reply->status, now->boot_ms);
        return false;
    }
}

static struct provider_asked *provider_asked_of(struct provider_run *run, unsigned slot)
{
    return slot == SLOT_TOKEN             ? &run->token
           : slot == SLOT_ACKNOWLEDGEMENT ? &run->acknowledgement
                                          : &run->paths[slot];
}

bool provider_take(struct provider_run *run, unsigned slot, const struct http_reply *reply,
                   const struct notice_now *now, unsigned *ret_topic, struct notice_set *ret_set)
{
    struct provider_asked *asked = provider_asked_of(run, slot);

    run->seen_boot_ms = now->boot_ms;
    asked->in_flight = false;
    if (slot == SLOT_TOKEN)
        provider_take_token(run, reply, now->boot_ms);
    if (slot == SLOT_ACKNOWLEDGEMENT)
        provider_take_acknowledgement(run, reply, now->boot_ms);
    if (slot >= PROVIDER_PATHS_MAX)
        return false;
    ret_set->count = 0;
    *ret_topic = slot;
    if (reply->result == HTTP_ANSWERED)
        return provider_take_answer(run, slot, reply, now, ret_set);
    provider_fail_transport(run, asked, reply, now->boot_ms);
    if (run->token_missing && reply->result != HTTP_GARBAGE) {
        run->token_missing = false; /* nobody is there: next time from the beginning */
        run->token.next_boot_ms = asked->next_boot_ms;
    }
    return false;
}

void provider_not_started(struct provider_run *run, unsigned slot, int64_t now_boot_ms)
{
    struct provider_asked *asked = provider_asked_of(run, slot);

    asked->in_flight = false;
    asked->next_boot_ms = now_boot_ms + PROVIDER_BACKOFF_MS;
}
