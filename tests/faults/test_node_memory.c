/* A node's core that finds no memory for what nobody would repeat. */
#include "schema/manifest/manifest.h"
#include "tests/faults/allocations.h"
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static int running(void **state)
{
    static struct member_fixture f;

    member_fixture_running(&f, 1, LAYOUT_REPLICATED);
    member_ack_all(&f);
    *state = &f;
    return 0;
}

static int close_member(void **state)
{
    member_fixture_close(*state);
    return 0;
}

/* Feeds a frame to a core whose actions have no memory yet, the allocation `at` refused; false:
 * there were not so many. */
static bool refused(struct member_fixture *f, struct wire_msg message, uint64_t at)
{
    member_actions_free(&f->out);
    allocations_plan(ALLOCATIONS_OWN, at, false);
    allocations_begin();
    member_frame(f, message);
    allocations_end();
    return allocations_hits() > 0;
}

static struct wire_msg deletion(struct member_fixture *f, uint64_t checkpoint)
{
    struct wire_msg message = member_down(f, WIRE_DELETE);

    message.u.delete = (struct wire_delete){
        .checkpoint = checkpoint, .round_generation = 1, .step = 4, .path = "/c/4", .trash = "old"};
    return message;
}

/* Without the folder's name what a user wanted to keep would be gone. */
static void a_deletion_never_loses_the_folder_that_it_goes_to(void **state)
{
    struct member_fixture *f = *state;
    uint64_t at = 1, begun = 0;

    for (; refused(f, deletion(f, at), at); at++) {
        const struct member_action *action = member_did(f, MEMBER_DELETE);

        if (action == NULL) {
            assert_true(f->m->starved || f->m->deletes_count == begun); /* told again, or a fault */
            begun = f->m->deletes_count;
            continue;
        }
        begun++;
        assert_string_equal(action->trash, "old");
        assert_string_equal(action->text, "/c/4");
    }
    assert_true(at > 2);
}

static struct wire_msg chunk(struct member_fixture *f)
{
    static const uint8_t bytes[6000]; /* more than an arena's chunk */
    struct wire_msg message = member_down(f, WIRE_MANIFEST_CHUNK);

    message.u.manifest_chunk = (struct wire_manifest_chunk){.checkpoint = 1,
                                                            .round_generation = 2,
                                                            .step = 5,
                                                            .total = sizeof bytes,
                                                            .bytes = {bytes, sizeof bytes}};
    return message;
}

static void a_manifest_without_memory_is_fetched_anew(void **state)
{
    struct member_fixture *f = *state;
    uint64_t at = 1;

    member_capture(f, CAUSE_TERMINATION);
    member_commit(f, 1, CAUSE_TERMINATION, 5, true);
    for (; refused(f, chunk(f), at) && member_did(f, MEMBER_WRITE_MANIFEST) == NULL; at++)
        if (f->m->starved)
            break; /* the node ends with a fault */
    assert_true(at > 2);
    if (!f->m->starved) {
        member_frame(f, chunk(f));
        assert_true(f->m->manifest_writing);
    }
}

/* What is not repeated: a gate's closing, above all. */
static void an_action_without_memory_is_a_fault(void **state)
{
    struct member_fixture *f = *state;
    const struct wire_member me = {.rank = 1, .incarnation = MEMBER_INCARNATION};
    struct wire_event event = member_event(f, EVENT_FREEZE);
    struct wire_msg message = member_down(f, WIRE_EVENT);
    const struct member_input input = {.kind = MEMBER_FRAME,
                                       .now_boot_ms = f->now,
                                       .begun = f->begun,
                                       .done = f->done,
                                       .message = &message};

    event.seq = f->seq + 1;
    event.round = 1;
    event.members.items = &me;
    event.members.count = 1;
    message.u.event = event;
    assert_false(member_is_starved(f->m));
    member_actions_free(&f->out);
    allocations_plan(ALLOCATIONS_OWN, 1, false);
    allocations_begin();
    member_step(f->m, &input, &f->out);
    allocations_end();
    assert_int_equal(allocations_hits(), 1);
    assert_true(member_is_starved(f->m));
}

/* --- manifests -------------------------------------------------------------------------------- */

#define SUM "xxh3-128:00112233445566778899aabbccddeeff"

static const struct wire_file file = {"shard-00000-0000000000000032.safetensors", 30, SUM};
static const struct manifest_shard shard = {0, 50, &file, 1};
static const struct manifest manifest = {.job = "a-job-of-a-longer-name",
                                         .generation = 1,
                                         .round = 2,
                                         .step = 3,
                                         .layout = LAYOUT_REPLICATED,
                                         .world_size = 1,
                                         .data_position = 4611686018427387903,
                                         .cause = "operator",
                                         .metrics = "{\"a_loss_of_a_longer_name\":0.5}",
                                         .shards = &shard,
                                         .shard_count = 1};

static enum muster_status with_refusal(uint64_t at, const char *whole, size_t whole_size,
                                       char **text, struct manifest **parsed)
{
    enum muster_status status;
    size_t size = 0;

    allocations_plan(ALLOCATIONS_OWN, at, false);
    allocations_begin();
    if (parsed != NULL)
        status = manifest_parse(whole, whole_size, parsed, NULL);
    else
        status = manifest_render(&manifest, text, &size, NULL);
    allocations_end();
    return status;
}

/* jansson leaves out what a buffer has no room for: the manifest is then another. */
static void a_manifest_that_is_read_without_memory_is_not_another(void **state)
{
    struct manifest *parsed = NULL;
    char *text = NULL;
    size_t size;
    uint64_t at = 0;

    (void)state;
    assert_int_equal(manifest_render(&manifest, &text, &size, NULL), MUSTER_OK);
    do {
        enum muster_status status = with_refusal(++at, text, size, NULL, &parsed);

        if (status != MUSTER_OK) {
            assert_int_equal(status, MUSTER_E_NOMEM);
            continue;
        }
        assert_string_equal(parsed->job, manifest.job);
        assert_string_equal(parsed->metrics, manifest.metrics);
        assert_string_equal(parsed->shards[0].files[0].path, file.path);
        assert_int_equal(parsed->data_position, manifest.data_position);
        manifest_destroy(&parsed);
    } while (allocations_hits() > 0);
    assert_true(at > 100);
    free(text);
}

static void a_manifest_that_is_written_without_memory_is_not_another(void **state)
{
    char *whole = NULL, *text = NULL;
    size_t size;
    uint64_t at = 0;

    (void)state;
    assert_int_equal(manifest_render(&manifest, &whole, &size, NULL), MUSTER_OK);
    do {
        if (with_refusal(++at, NULL, 0, &text, NULL) != MUSTER_OK)
            continue;
        assert_string_equal(text, whole);
        free(text);
    } while (allocations_hits() > 0);
    assert_true(at > 50);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_deletion_never_loses_the_folder_that_it_goes_to, running,
                                        close_member),
        cmocka_unit_test_setup_teardown(a_manifest_without_memory_is_fetched_anew, running,
                                        close_member),
        cmocka_unit_test_setup_teardown(an_action_without_memory_is_a_fault, running, close_member),
        cmocka_unit_test(a_manifest_that_is_read_without_memory_is_not_another),
        cmocka_unit_test(a_manifest_that_is_written_without_memory_is_not_another),
    };

    allocations_prepare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
