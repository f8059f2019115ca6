/* provider_fixture - a provider without network and clock: what it asks, and what it makes of a
 * reply. */
#ifndef TESTS_UNIT_PROVIDER_FIXTURE_H
#define TESTS_UNIT_PROVIDER_FIXTURE_H

#include "node/notice/providers/provider.h"

#define FIXTURE_BOOT INT64_C(5000000)
#define FIXTURE_UNIX INT64_C(1587748304000) /* 2020-04-24T17:11:44Z, a Friday */

struct provider_fixture {
    struct provider_run run;
    struct notice_now now;
    struct http_request asked;
    unsigned slot;
    struct source_status status;
    struct notice_set set;
    const char *headers; /* of each reply; "" = none */
    char memory[PROVIDER_MEMORY_MAX + 1], why[SOURCE_TEXT_MAX + 1];
};

/* Its run begins; parsers remember nothing. */
void fixture_begin(struct provider_fixture *f, const struct provider *provider);

/* One answer through a parser alone. */
enum parse_result fixture_parse(struct provider_fixture *f, provider_parse_fn *parser,
                                const char *body);
/* Is each of them garbage, with a reason and no notice? */
void fixture_all_garbage(struct provider_fixture *f, provider_parse_fn *parser,
                         const char *const *bodies, size_t count);

/* The next request that is due; then `asked` and `slot` have it. */
bool fixture_next(struct provider_fixture *f);
/* Fails if this path is not the next. */
void fixture_asks(struct provider_fixture *f, unsigned path);
/* The reply to `slot`; true: `set` is said. `status` is read again. */
bool fixture_give(struct provider_fixture *f, int status, const char *body);
bool fixture_fail(struct provider_fixture *f, enum http_result result);
/* In how many ms this path is asked. */
int64_t fixture_due_in(const struct provider_fixture *f, unsigned path);
void fixture_due_between(const struct provider_fixture *f, unsigned path, int64_t least_ms,
                         int64_t most_ms);
/* Until this path is due. */
void fixture_wait(struct provider_fixture *f, unsigned path);

#endif
