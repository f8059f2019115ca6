/* core_keep_fixture - see core_keep_fixture.h. */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void tell_policies(struct core_fixture *f, const char *keep, const char *save,
                          const char *trash)
{
    struct wire_msg message = core_msg(f, 0, WIRE_POLICIES);

    message.u.policies = (struct wire_policies){.keep = keep, .save = save, .trash = trash};
    core_say(f, 0, message);
}

void core_policies(struct core_fixture *f, const char *keep, const char *save)
{
    tell_policies(f, keep, save, "");
}

void core_policies_trash(struct core_fixture *f, const char *keep, const char *trash)
{
    tell_policies(f, keep, "", trash);
}

void core_manifest_done(struct core_fixture *f, uint64_t checkpoint, int64_t step)
{
    struct wire_msg message = core_msg(f, 0, WIRE_MANIFEST_DONE);
    char path[64];

    snprintf(path, sizeof path, "/ckpt/%lld", (long long)step);
    message.u.manifest_done = (struct wire_manifest_done){.checkpoint = checkpoint, .path = path};
    core_say(f, 0, message);
}

void core_deleted(struct core_fixture *f, int node, uint64_t checkpoint, unsigned code)
{
    struct wire_msg message = core_msg(f, node, WIRE_DELETED);

    message.u.deleted =
        (struct wire_deleted){.checkpoint = checkpoint, .code = code, .text = "why not"};
    core_say(f, node, message);
}

void core_sweep(struct core_fixture *f, bool final)
{
    struct wire_msg message = core_msg(f, 0, WIRE_SWEEP);

    message.u.sweep.final = final;
    core_say(f, 0, message);
}

unsigned core_ack_code(const struct core_fixture *f, int node)
{
    const struct wire_msg *ack = core_sent(f, 100 + (uint64_t)node, WIRE_ACK);

    assert_non_null(ack);
    return (unsigned)ack->u.ack.code;
}

uint64_t core_ack_value(const struct core_fixture *f, int node)
{
    assert_int_equal(core_ack_code(f, node), MUSTER_OK);
    return core_sent(f, 100 + (uint64_t)node, WIRE_ACK)->u.ack.value;
}

uint64_t core_saved_whole(struct core_fixture *f, int64_t step)
{
    core_commit_at(f, step);
    uint64_t checkpoint = core_job(f)->round;
    core_manifest_done(f, checkpoint, step);
    return checkpoint;
}

void core_obey(struct core_fixture *f)
{
    uint64_t told[DELETES_IN_FLIGHT_MAX];
    size_t count;

    do {
        count = 0;
        core_tick(f);
        for (size_t i = 0; i < f->out.count; i++)
            if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_DELETE)
                told[count++] = f->out.items[i].message.u.delete.checkpoint;
        for (size_t i = 0; i < count; i++)
            core_deleted(f, 0, told[i], MUSTER_OK);
    } while (count > 0);
}

void assert_deletes(struct core_fixture *f, const char *expected)
{
    char found[256] = "";

    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_DELETE)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%llu:%llu",
                     found[0] != '\0' ? " " : "", (unsigned long long)f->out.items[i].route - 100,
                     (unsigned long long)f->out.items[i].message.u.delete.checkpoint);
    assert_string_equal(found, expected);
}

void assert_kept(struct core_fixture *f, const char *what, const char *expected)
{
    const struct job *job = core_job(f);
    char found[256] = "";
    size_t rows = 0;

    for (size_t i = 0; i < job->checkpoints_count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld", i > 0 ? " " : "",
                 (long long)job->checkpoints[i].row.step);
    if (strcmp(found, expected) != 0)
        fail_msg("%s: %s is kept, not %s", what, found, expected);
    for (size_t i = 0; i < f->rows_count; i++)
        rows += f->rows[i].kind == RECORD_CHECKPOINT &&
                f->rows[i].u.checkpoint.state == CHECKPOINT_COMMITTED;
    assert_int_equal(rows, job->checkpoints_count);
}

void core_start_again(struct core_fixture *f)
{
    core_restart(f, false);
    for (int n = 0; n < (int)f->world_size; n++)
        core_hello(f, n);
    core_clear(f);
}

void core_launch_again(struct core_fixture *f, const char *keep)
{
    const struct checkpoint *newest;

    for (int n = 0; n < (int)f->world_size; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    for (int n = 0; n < (int)f->world_size; n++) {
        f->nodes[n] = (struct core_node){.role = n == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                         .rank = (uint64_t)n,
                                         .incarnation = f->nodes[n].incarnation + 100,
                                         .route = 100 + (uint64_t)n};
        core_hello(f, n);
    }
    newest = registry_newest(core_job(f));
    for (int n = 0; n < (int)f->world_size; n++)
        core_restored(f, n, newest ? newest->row.round : 0, newest ? newest->row.step : 0);
    core_policies(f, keep, "");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

void core_drop(struct core_fixture *f, uint64_t checkpoint, bool newest)
{
    struct wire_msg message = core_msg(f, 0, WIRE_DROP);

    message.u.drop = (struct wire_drop){.checkpoint = checkpoint, .newest = newest};
    core_say(f, 0, message);
}

void core_pin(struct core_fixture *f, uint64_t checkpoint, const char *id, int64_t lease_ms)
{
    struct wire_msg message = {.type = WIRE_PIN, .up = {.job = "train", .role = ROLE_TOOL}};

    message.u.pin = (struct wire_pin){.checkpoint = checkpoint, .id = id, .lease_ms = lease_ms};
    core_tool(f, message, 1);
}

void core_unpin(struct core_fixture *f, uint64_t checkpoint, const char *id)
{
    struct wire_msg message = {.type = WIRE_UNPIN, .up = {.job = "train", .role = ROLE_TOOL}};

    message.u.unpin = (struct wire_unpin){.checkpoint = checkpoint, .id = id};
    core_tool(f, message, 1);
}
