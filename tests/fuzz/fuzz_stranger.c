/* What a client with a valid key of other jobs may do to a job that runs: nothing. The input is the
 * role of its key, then frames, each behind its length in two bytes. They pass the decoder and the
 * table of authority, as in the broker's loop, and what may be said the core takes. Whatever that
 * is, no row, no event and no message is of the honest job or to its ranks, and no number of all
 * jobs is out of their reach. */
#include "broker/core/contract/authority.h"
#include "schema/sql/queries.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/core_fixture.h"

#include <stdlib.h>
#include <string.h>

#define STRANGERS_ROUTE 900
#define FRAMES_MAX 64

static void is_of_strangers(const struct core_fixture *f, const struct action *action)
{
    must(strcmp(action->job, f->job) != 0);
    must(action->kind != ACTION_SEND || action->route >= STRANGERS_ROUTE);
    must(action->kind != ACTION_PUBLISH || action->job[0] != '\0');
    if (action->kind == ACTION_SEND_ROWS)
        must(action->message.up.job != NULL && strncmp(action->message.up.job, "other", 5) == 0 &&
             strcmp(action->message.u.query.name, QUERY_BROKER) != 0);
}

struct honest {
    uint64_t seq, round, generation;
    unsigned state;
    size_t peers, checkpoints, pins;
};

static struct honest honest_of(struct core_fixture *f)
{
    const struct job *job = core_job(f);
    struct honest now;

    memset(&now, 0, sizeof now);
    now.seq = job->seq;
    now.round = job->round;
    now.generation = job->gen.generation;
    now.state = job->gen.state;
    now.peers = job->peers_count;
    now.checkpoints = job->checkpoints_count;
    now.pins = job->keep.pins_count;
    for (size_t i = 0; i < job->peers_count; i++)
        must(job->peers[i]->state == NODE_RESTORED && job->peers[i]->mapped &&
             job->peers[i]->route < STRANGERS_ROUTE && job->peers[i]->gone_state == 0);
    must(job->notices == NULL);
    return now;
}

static void take_one(struct core_fixture *f, const struct key_grant *grant, const uint8_t *frame,
                     size_t size, uint64_t route)
{
    struct wire_msg message = {.type = WIRE_NONE};
    struct muster_error err = {0};
    struct arena arena;

    arena_init(&arena, (size_t)1 << 22);
    if (wire_decode(frame, size, &arena, &message, &err) == MUSTER_OK && wire_is_up(message.type)) {
        if (authority_check(grant, &message, f->now, &err) == MUSTER_OK) {
            f->by = "key stranger";
            f->key_jobs = grant->jobs;
            core_feed(f, route, &message);
            for (size_t i = 0; i < f->out.count; i++)
                is_of_strangers(f, &f->out.items[i]);
        } else {
            must(err.status == MUSTER_E_AUTH && err.text[0] != '\0');
        }
    }
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct core_fixture f;
    struct key_grant grant = {.name = "stranger", .jobs = "other*"};
    struct honest before, after;
    uint64_t epoch;

    if (size < 1)
        return 0;
    grant.role = 1 + data[0] % (KEY_ROLE_COUNT - 1);
    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    before = honest_of(&f);
    epoch = core_epoch(f.core);
    data++, size--;
    for (int i = 0; i < FRAMES_MAX && size >= 2; i++) {
        size_t length = (size_t)data[0] << 8 | data[1];

        data += 2, size -= 2;
        length = length < size ? length : size;
        take_one(&f, &grant, data, length, STRANGERS_ROUTE + (uint64_t)i % 3);
        data += length, size -= length;
    }
    after = honest_of(&f);
    must(memcmp(&before, &after, sizeof before) == 0);
    must(core_epoch(f.core) - epoch <= (uint64_t)FRAMES_MAX * (EPOCH_AHEAD_MAX + 1));
    core_fixture_close(&f);
    return 0;
}
