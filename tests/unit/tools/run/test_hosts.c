/* What `muster run` makes of the words of its small process, without that process. */
#include "tools/run/hosts.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hosts hosts;
static int speaker; /* the small process' end */

static int setup(void **state)
{
    int fds[2];

    (void)state;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return -1;
    hosts = (struct hosts){.fd = fds[0]};
    speaker = fds[1];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (hosts.fd >= 0)
        close(hosts.fd);
    if (speaker >= 0)
        close(speaker);
    return 0;
}

static void say(struct hosts_message message)
{
    assert_int_equal(send(speaker, &message, sizeof message, 0), sizeof message);
}

static void news_come_in_their_order_and_nothing_blocks(void **state)
{
    struct hosts_message got;

    (void)state;
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_NOTHING);
    say((struct hosts_message){.news = HOSTS_WAIT, .text = "for two hosts"});
    say((struct hosts_message){.news = HOSTS_PLACE, .launch = 4, .place = 1, .world_size = 16});
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_WAIT);
    assert_string_equal(got.text, "for two hosts");
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_PLACE);
    assert_int_equal(got.launch, 4);
    assert_int_equal(got.place, 1);
    assert_int_equal(got.world_size, 16);
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_NOTHING);
}

static void a_refusal_is_told_from_then_on(void **state)
{
    struct hosts_message got;

    (void)state;
    say((struct hosts_message){.news = HOSTS_REFUSED, .text = "this job has its hosts"});
    say((struct hosts_message){.news = HOSTS_PLACE, .launch = 9});
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hosts_read(&hosts, &got), HOSTS_REFUSED);
        assert_string_equal(got.text, "this job has its hosts");
    }
    assert_int_equal(hosts.fd, -1);
}

static void the_end_of_the_small_process_is_a_refusal(void **state)
{
    struct hosts_message got;

    (void)state;
    close(speaker);
    speaker = -1;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hosts_read(&hosts, &got), HOSTS_REFUSED);
        assert_string_equal(got.text, "the process that tells the broker of this host has ended");
    }
}

static void the_small_process_hears_which_launch_ended_and_when_to_leave(void **state)
{
    struct hosts_options options = {.job = "train"};
    struct speaker s = {.fd = speaker, .options = &options, .told = 9};

    (void)state;
    hosts_ended(&hosts, 7, false);
    assert_true(hosts_speaker_hear(&s));
    assert_int_equal(s.host.ended, 7);
    assert_false(hosts_speaker_waits(&s));
    hosts_ended(&hosts, 3, false); /* late */
    assert_true(hosts_speaker_hear(&s));
    assert_int_equal(s.host.ended, 7);
    hosts_ended(&hosts, 9, true);
    assert_false(hosts_speaker_hear(&s));
    assert_true(hosts_speaker_waits(&s)); /* for its next launch */
    close(hosts.fd);
    hosts.fd = -1;
    assert_false(hosts_speaker_hear(&s)); /* `muster run` is gone */
}

static void a_wait_is_told_once_for_each_text(void **state)
{
    struct speaker s = {.fd = speaker};
    struct hosts_message got;

    (void)state;
    hosts_speaker_say(&s, HOSTS_WAIT, "for one host");
    hosts_speaker_say(&s, HOSTS_WAIT, "for one host");
    hosts_speaker_say(&s, HOSTS_WAIT, "for a port");
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_WAIT);
    assert_string_equal(got.text, "for one host");
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_WAIT);
    assert_string_equal(got.text, "for a port");
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_NOTHING);
}

static void a_launch_that_lost_a_host_is_over_once(void **state)
{
    struct speaker s = {.fd = speaker, .told = 2};
    struct hosts_message got;

    (void)state;
    hosts_speaker_gone(&s, 2, "host b");
    hosts_speaker_gone(&s, 2, "host b");
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_GONE);
    assert_string_equal(got.text, "host b");
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_NOTHING);
    hosts_speaker_gone(&s, 3, "host c"); /* over before it began here: nobody is told */
    assert_int_equal(hosts_read(&hosts, &got), HOSTS_NOTHING);
    assert_int_equal(s.told, 3);
    assert_true(hosts_speaker_waits(&s));
}

static void without_an_address_of_the_broker_it_is_this_host(void **state)
{
    char address[HOST_MAX + 1];

    (void)state;
    hosts_address_towards(NULL, address, sizeof address);
    assert_string_equal(address, "127.0.0.1");
    hosts_address_towards("ipc:///run/musterd.sock", address, sizeof address);
    assert_string_equal(address, "127.0.0.1");
    hosts_address_towards("tcp://127.0.0.1:7700", address, sizeof address);
    assert_string_equal(address, "127.0.0.1");
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(news_come_in_their_order_and_nothing_blocks),
        T(a_refusal_is_told_from_then_on),
        T(the_end_of_the_small_process_is_a_refusal),
        T(the_small_process_hears_which_launch_ended_and_when_to_leave),
        T(a_wait_is_told_once_for_each_text),
        T(a_launch_that_lost_a_host_is_over_once),
        T(without_an_address_of_the_broker_it_is_this_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
