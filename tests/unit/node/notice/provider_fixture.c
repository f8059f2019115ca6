/* provider_fixture - see provider_fixture.h. */
#include "tests/unit/node/notice/provider_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void fixture_begin(struct provider_fixture *f, const struct provider *provider)
{
    memset(f, 0, sizeof *f);
    f->headers = "";
    f->now = (struct notice_now){FIXTURE_BOOT, FIXTURE_UNIX};
    assert_true(provider_init(&f->run, provider, NULL, 7, f->now.boot_ms));
}

static struct http_reply reply_of(const struct provider_fixture *f, int status, const char *body)
{
    return (struct http_reply){.result = HTTP_ANSWERED,
                               .status = status,
                               .headers = f->headers,
                               .body = body,
                               .size = strlen(body),
                               .error = ""};
}

enum parse_result fixture_parse(struct provider_fixture *f, provider_parse_fn *parser,
                                const char *body)
{
    const struct provider_context context = {.now = f->now, .memory = f->memory, .why = f->why};
    struct http_reply reply = reply_of(f, 200, body);

    f->set.count = 0;
    f->why[0] = '\0';
    return parser(&reply, &context, &f->set);
}

void fixture_all_garbage(struct provider_fixture *f, provider_parse_fn *parser,
                         const char *const *bodies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fixture_parse(f, parser, bodies[i]) != PARSE_GARBAGE)
            fail_msg("taken: \"%s\"", bodies[i]);
        assert_string_not_equal(f->why, "");
    }
}

bool fixture_next(struct provider_fixture *f)
{
    return provider_next(&f->run, f->now.boot_ms, &f->asked, &f->slot);
}

void fixture_asks(struct provider_fixture *f, unsigned path)
{
    if (!fixture_next(f))
        fail_msg("nothing is asked");
    assert_int_equal(f->slot, path);
}

static bool take(struct provider_fixture *f, const struct http_reply *reply)
{
    unsigned topic;
    bool said = provider_take(&f->run, f->slot, reply, &f->now, &topic, &f->set);

    if (said)
        assert_int_equal(topic, f->slot);
    provider_status(&f->run, &f->status);
    return said;
}

bool fixture_give(struct provider_fixture *f, int status, const char *body)
{
    struct http_reply reply = reply_of(f, status, body);

    return take(f, &reply);
}

bool fixture_fail(struct provider_fixture *f, enum http_result result)
{
    return take(
        f, &(struct http_reply){.result = result, .headers = "", .body = "", .error = "no answer"});
}

int64_t fixture_due_in(const struct provider_fixture *f, unsigned path)
{
    return f->run.paths[path].next_boot_ms - f->now.boot_ms;
}

void fixture_due_between(const struct provider_fixture *f, unsigned path, int64_t least_ms,
                         int64_t most_ms)
{
    int64_t in = fixture_due_in(f, path);

    if (in < least_ms || in > most_ms)
        fail_msg("path %u is asked in %lld ms", path, (long long)in);
}

void fixture_wait(struct provider_fixture *f, unsigned path)
{
    int64_t in = fixture_due_in(f, path);

    if (in > 0)
        f->now = (struct notice_now){f->now.boot_ms + in, f->now.unix_ms + in};
}
