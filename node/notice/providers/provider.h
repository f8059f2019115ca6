/* provider - the pure half of every metadata service: what to ask when, what an answer means.
 * Owns: tokens, retries, backing off, states, the rules of HTTP statuses; for one provider and one
 * node. Never: a socket, a clock, a thread, memory. Pure: a test gives times and replies.
 *
 *   answer                    meaning                       next
 *   200, parsed               healthy, the set is the truth  the path's interval
 *   200, not parsed           degraded, nothing changes      the path's interval
 *   404                       healthy, an empty set          the path's interval
 *                             (as 403 where missing_is_absent)
 *   404, no token, no proof   degraded, nothing changes      the path's interval
 *   401                       a new token, once; then degraded, backing off
 *   400 403 405, another's    never well: absent after 3     1, 2 s, then 10 min
 *                             else degraded                  1, 2, 4 .. s, see backoff_max_ms
 *   410 429 5xx reset, late   degraded, nothing changes      1, 2, 4 .. s, see backoff_max_ms
 *   refused, late, never well absent                         1, 2, 4 .. 30 s
 *   a token: late, 404, 405   asked without one
 *   a token: 401              absent                        10 min; if one was ever given 1, 2, 4 s
 *
 * Once an end is announced, asking goes on at the full rate. Delays are longer or shorter by up to
 * a fifth. */
#ifndef NODE_NOTICE_PROVIDER_H
#define NODE_NOTICE_PROVIDER_H

#include "node/notice/base/http.h"
#include "node/notice/base/source.h"

#define PROVIDER_PATHS_MAX 6
#define PROVIDER_MEMORY_MAX 127
#define PROVIDER_TOKEN_MAX 1023
#define PROVIDER_BACKOFF_MS 1000
#define PROVIDER_BACKOFF_MAX_MS 30000
#define PROVIDER_RARELY_MS 600000
#define PROVIDER_DENIED_MAX 3
#define PROVIDER_ACKNOWLEDGED_MAX 8
#define PROVIDER_BODY_MAX 255

enum parse_result {
    PARSE_OK,
    PARSE_GARBAGE, /* not what the documentation says: no notice, nothing is withdrawn */
    PARSE_FOREIGN  /* this is another's service */
};

struct provider_context {
    struct notice_now
        now;      /* the wall clock as the service has it, if its Date header differs by seconds */
    char *memory; /* PROVIDER_MEMORY_MAX + 1 bytes of the node's own, kept from call to call: as a
                     VM's name */
    char *why;    /* SOURCE_TEXT_MAX + 1 bytes: what is wrong with garbage; else left alone */
};
/* For parsers: says why, and is PARSE_GARBAGE. */
enum parse_result provider_garbage(const struct provider_context *context, const char *why);
/* Is this the name of an instance, prefix and then letters and digits? It is kept in memory. */
bool provider_instance_id(const struct http_reply *reply, const char *prefix,
                          const struct provider_context *context);
/* A spot instance that is released at unix_ms, as `text` says. A time too far ahead to be one is
 * taken for lead_ms, the platform's own. */
enum parse_result provider_release(const struct provider_context *context, const char *text,
                                   int64_t unix_ms, int64_t lead_ms, struct notice_set *set);
/* Pure. One answer with status 200; set is empty. */
typedef enum parse_result provider_parse_fn(const struct http_reply *reply,
                                            const struct provider_context *context,
                                            struct notice_set *set);

struct provider_path {
    const char *path;       /* "/latest/..." */
    const char *wait_query; /* long poll: "?wait_for_change=true&last_etag=" and so on, to which the
                               ETag of the last answer is appended ("0", which waits for nothing, at
                               first and after a failure); NULL = none */
    int64_t interval_ms;    /* from asking to asking; 0 = until it was answered well once */
    int64_t timeout_ms;
    int64_t first_timeout_ms; /* until it was answered well once, of a long poll: where it waits for
                                 nothing; 0 = timeout_ms */
    unsigned after; /* 1 + index of the path that must have been answered well before; 0 = none */
    bool missing_is_absent; /* 404 does not mean "no notice" */
    bool hint;              /* its troubles are not the source's */
    provider_parse_fn *parse;
};

struct provider {
    const char *name;
    const char *endpoint;                /* "http://169.254.169.254" */
    const char *endpoint_environment[2]; /* the platform's own variables, or NULL: an address or a
                                            host; MUSTER_<NAME>_ENDPOINT goes before */
    const char *disabled_environment;    /* "true": the source is off; or NULL */
    const char *header;                  /* of each GET: "Metadata: true"; NULL = none */
    /* A token that is PUT for first; all NULL, 0 = none. */
    const char *token_path, *token_ttl_header, *token_header;
    int64_t token_ttl_s;
    bool token_ttl_told; /* a reply with a token repeats that header: one that does not is another's
                          */
    bool (*is_ours_tokenless)(const struct http_reply *reply); /* of each 404 where none was ever
                                                                  given: any server answers so */
    int64_t connect_ms;
    int64_t backoff_max_ms; /* once somebody answered; 1000 where a notice gives 30 s. 0 =
                               PROVIDER_BACKOFF_MAX_MS */
    bool (*is_ours)(
        const struct http_reply *reply); /* of each 200 and 404; NULL = not to be told */
    const struct provider_path *paths;
    size_t path_count;
    /* "Go ahead now", POSTed to that path for an end that is announced and can still be withdrawn:
     * only where the environment says "1" or "true", and only after the job's checkpoint is
     * committed. NULL = there is no such thing. */
    const char *acknowledge_environment;
    unsigned acknowledge_slot; /* the path that announces, and is POSTed to */
    void (*acknowledge)(const struct notice_item *item, char ret_body[PROVIDER_BODY_MAX + 1]);
};

/* How much faster a test's time goes; 0 = as it is. */
struct provider_pace {
    int64_t waits;    /* between requests */
    int64_t timeouts; /* of requests, not of connecting */
};

struct provider_asked { /* what is asked again and again: a path, the token */
    bool in_flight, well_once, renewed, pending;
    enum source_state state;
    unsigned failures, denied;
    int64_t asked_boot_ms, next_boot_ms, last_ok_boot_ms;
    uint64_t token_serial; /* that the request in flight has */
    char etag[64];
    char text[SOURCE_TEXT_MAX + 1];
};

struct provider_run {
    const struct provider *provider;
    struct provider_pace pace;
    char endpoint[256];
    struct provider_asked paths[PROVIDER_PATHS_MAX], token;
    char token_text[PROVIDER_TOKEN_MAX + 1];
    uint64_t token_serial; /* of token_text; grows */
    /* Acknowledging: wanted, allowed, what is announced, what was done or given up. */
    bool acknowledges, committed;
    struct provider_asked acknowledgement;
    char acknowledging[NOTICE_KEY_MAX + 1]; /* in flight, or the last one */
    struct notice_set announced;
    char acknowledged[PROVIDER_ACKNOWLEDGED_MAX][NOTICE_KEY_MAX + 1];
    size_t acknowledged_count;
    char body[PROVIDER_BODY_MAX + 1];
    bool token_missing; /* none was given in time: asking goes on without one */
    bool proved;        /* it gave a token once, or answered as no other would */
    int64_t token_until_boot_ms, token_refresh_boot_ms;
    int64_t seen_boot_ms; /* the last time that it was told: a token ends by itself */
    char memory[PROVIDER_MEMORY_MAX + 1];
    uint64_t random;
};

/* endpoint NULL: the provider's own. False: it is longer than fits, or no "http://". */
bool provider_init(struct provider_run *run, const struct provider *provider, const char *endpoint,
                   uint64_t seed, int64_t now_boot_ms);
void provider_set_pace(struct provider_run *run, struct provider_pace pace);
/* It may acknowledge; the job's checkpoint is committed. Nothing is acknowledged without both. */
void provider_allow_acknowledging(struct provider_run *run);
void provider_committed(struct provider_run *run);
/* Is there something that is to be acknowledged? */
bool provider_is_acknowledging(const struct provider_run *run);
/* The next request that is due, which from here on is in flight; false: none now. Its body is the
 * run's. */
bool provider_next(struct provider_run *run, int64_t now_boot_ms, struct http_request *ret_request,
                   unsigned *ret_slot);
/* The request could not be started: it is due again after PROVIDER_BACKOFF_MS, and counts as no
 * answer. */
void provider_not_started(struct provider_run *run, unsigned slot, int64_t now_boot_ms);
/* True: topic says *ret_set now. */
bool provider_take(struct provider_run *run, unsigned slot, const struct http_reply *reply,
                   const struct notice_now *now, unsigned *ret_topic, struct notice_set *ret_set);
/* A token was given, and it is still valid. */
bool provider_has_token(const struct provider_run *run, int64_t now_boot_ms);
int64_t provider_wakeup_boot_ms(const struct provider_run *run);
void provider_status(const struct provider_run *run, struct source_status *ret_status);

#endif
