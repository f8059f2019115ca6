/* The node's core: what a broker signs with, and what this process's key file asks for. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* WELCOME of a broker that signs with this key ("": with none). */
static void welcome_of_signer(struct member_fixture *f, const char *signer)
{
    struct wire_msg message = member_down(f, WIRE_WELCOME);

    message.u.welcome = (struct wire_welcome){.speaks = WIRE_SPEAKS,
                                              .nonce = f->m->nonce,
                                              .generation = f->generation,
                                              .world_size = 3,
                                              .events_endpoint = "ipc:///e",
                                              .snapshot_follows = true,
                                              .signer = signer};
    member_frame(f, message);
}

static void open_asking_for(struct member_fixture *f, const char *signer)
{
    member_fixture_close(f);
    member_fixture_open(f, 1, LAYOUT_REPLICATED);
    free((char *)f->m->options.signer);
    f->m->options.signer = strdup(signer);
    member_tick_at(f, f->now);
}

static void a_broker_that_does_not_sign_as_asked_is_refused_at_the_start(void **state)
{
    struct member_fixture *f = *state;

    open_asking_for(f, "aa");
    welcome_of_signer(f, "");
    assert_int_equal(member_seen(f)->refused.status, MUSTER_E_SIGNATURE);
    assert_non_null(strstr(member_seen(f)->refused.text, "musterd --sign"));
    open_asking_for(f, "aa");
    welcome_of_signer(f, "bb");
    assert_int_equal(member_seen(f)->refused.status, MUSTER_E_SIGNATURE);
    assert_false(member_seen(f)->refused_retry);
    open_asking_for(f, "aa");
    welcome_of_signer(f, "aa");
    assert_int_equal(member_seen(f)->refused.status, MUSTER_OK);
    assert_true(member_seen(f)->broker_signs);
    open_asking_for(f, "");
    welcome_of_signer(f, "bb");
    assert_int_equal(member_seen(f)->refused.status, MUSTER_OK);
    assert_true(member_seen(f)->broker_signs);
}

/* A launch that runs is worth more than the signatures of its next saves. */
static void a_broker_that_comes_back_without_signing_ends_no_launch(void **state)
{
    struct member_fixture *f = *state;

    free((char *)f->m->options.signer);
    f->m->options.signer = strdup("aa");
    member_feed(f, (struct member_input){.kind = MEMBER_CONNECTED});
    welcome_of_signer(f, "");
    assert_int_equal(member_seen(f)->refused.status, MUSTER_OK);
    assert_int_equal(member_seen(f)->end.status, MUSTER_OK);
    assert_false(member_seen(f)->broker_signs);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)
    const struct CMUnitTest tests[] = {
        T(a_broker_that_does_not_sign_as_asked_is_refused_at_the_start),
        T(a_broker_that_comes_back_without_signing_ends_no_launch),
    };

    return cmocka_run_group_tests_name("member_signer", tests, NULL, NULL);
}
