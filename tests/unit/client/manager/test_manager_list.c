/* The list of checkpoints as a broker's answer makes it: which are readable, in which order, and
 * where they lie. A directory's list is in test_manager.c. */
#define query_link_open give_link
#define query_link_set_over give_over
#define query_link_page give_page
#define query_link_close give_close
#include "client/manager/manager_list.c" /* NOLINT(bugprone-suspicious-include) */

#include "client/query/query_rows.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct muster_checkpoint_row rows[8];
static size_t count;
static enum muster_status answer;
static struct manager_source source;
static struct manager_list list;
static const char *asked;

enum muster_status give_link(const char *address, int timeout_ms, struct query_link **ret_link,
                             struct muster_error *err)
{
    (void)address, (void)timeout_ms, (void)err;
    *ret_link = (struct query_link *)&rows;
    return MUSTER_OK;
}

void give_over(struct query_link *link, bool (*over)(const void *arg), const void *arg)
{
    (void)link, (void)over, (void)arg;
}

void give_close(struct query_link **link)
{
    *link = NULL;
}

/* Two rows a page. */
enum muster_status give_page(struct query_link *link, const struct question *question,
                             muster_rows_t *to, bool *ret_more, struct muster_error *err)
{
    size_t have = muster_rows_count(to);

    (void)link, (void)err;
    asked = question->query;
    assert_string_equal(question->job, "train");
    for (size_t i = have; i < count && i < have + 2; i++) {
        assert_int_equal(rows_append(to, NULL, 0, NULL), MUSTER_OK);
        ((struct muster_checkpoint_row *)muster_rows_checkpoints(to))[i] = rows[i];
    }
    *ret_more = have + 2 < count;
    return answer;
}

static int setup(void **state)
{
    (void)state;
    source = (struct manager_source){.broker = "tcp://h:7700", .job = "train"};
    manager_list_init(&list);
    count = 0;
    answer = MUSTER_OK;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    manager_source_close(&source);
    assert_null(source.link);
    manager_list_free(&list);
    return 0;
}

static struct muster_checkpoint_row *add(int64_t checkpoint, int64_t steps, const char *state)
{
    rows[count] = (struct muster_checkpoint_row){.checkpoint = checkpoint,
                                                 .generation = 1,
                                                 .step = steps,
                                                 .state = state,
                                                 .path = "/c/of-the-broker",
                                                 .in_place = true,
                                                 .metrics = ""};
    return &rows[count++];
}

static void read_list(void)
{
    struct muster_error err;

    assert_int_equal(manager_list_read(&list, &source, &err), MUSTER_OK);
}

static void all_pages_are_read_and_stand_by_step(void **state)
{
    (void)state;
    add(1, 21, "committed");
    add(2, 11, "committed");
    add(3, 31, "writing");
    add(4, 5, "committed");
    add(5, 16, "failed");
    read_list();
    assert_string_equal(asked, "checkpoints");
    assert_int_equal(list.count, 3);
    assert_int_equal(list.items[0].step, 4); /* an index: one below the steps done */
    assert_int_equal(list.items[1].step, 10);
    assert_int_equal(manager_list_newest(&list)->step, 20);
    assert_int_equal(manager_list_newest(&list)->checkpoint, 1);
    assert_int_equal(manager_list_find(&list, 10)->checkpoint, 2);
    assert_null(manager_list_find(&list, 30));
    assert_int_equal(list.unlisted_count, 2);
    assert_int_equal(list.unlisted[0].step, 30);
    assert_string_equal(list.unlisted[1].state, "failed");
}

static void of_one_step_the_one_that_was_made_last_counts(void **state)
{
    (void)state;
    add(9, 11, "committed")->generation = 2;
    add(4, 11, "committed");
    add(5, 11, "committed");
    read_list();
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].checkpoint, 9);
}

static void one_without_its_final_name_is_listed_but_for_a_reader(void **state)
{
    (void)state;
    add(1, 11, "committed");
    add(2, 21, "committed")->in_place = false;
    read_list();
    assert_int_equal(list.count, 2);
    assert_int_equal(list.unplaced, 2);
    assert_int_equal(list.hidden, 0);
    source.readable_only = true;
    read_list();
    assert_int_equal(list.count, 1);
    assert_int_equal(list.hidden, 1);
}

/* The newest cannot be read yet: the one before it can. */
static void a_reader_that_asks_for_the_newest_alone_asks_again_for_all(void **state)
{
    struct muster_error err;

    (void)state;
    add(2, 21, "committed");
    assert_int_equal(manager_list_read_newest(&list, &source, &err), MUSTER_OK);
    assert_string_equal(asked, "latest");
    rows[0].in_place = false;
    source.readable_only = true;
    assert_int_equal(manager_list_read_newest(&list, &source, &err), MUSTER_OK);
    assert_string_equal(asked, "checkpoints");
}

static void without_the_given_directory_the_brokers_path_stands(void **state)
{
    char dir[SCRATCH_PATH_MAX];

    (void)state;
    scratch_make(dir);
    source.directory = dir;
    add(1, 11, "committed")->path = "/c/10";
    read_list();
    assert_string_equal(list.items[0].path, "/c/10");
    scratch_remove(dir);
}

static void a_failure_leaves_an_empty_list(void **state)
{
    struct muster_error err = {.text = ""};

    (void)state;
    add(1, 11, "committed");
    read_list();
    answer = MUSTER_E_BROKER;
    assert_int_equal(manager_list_read(&list, &source, &err), MUSTER_E_BROKER);
    assert_int_equal(list.count, 0);
    assert_null(manager_list_newest(&list));
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static void one_that_was_broken_off_says_so(void **state)
{
    struct muster_error err = {.text = ""};

    (void)state;
    answer = MUSTER_E_BROKER;
    source.interrupted = always;
    assert_int_equal(manager_list_read(&list, &source, &err), MUSTER_E_BROKER);
    assert_true(manager_source_is_over(&source)); /* as the link asks while it waits */
    assert_int_equal(manager_source_told(&source, MUSTER_E_BROKER, &err), MUSTER_E_INTERRUPTED);
    assert_int_equal(manager_source_told(&source, MUSTER_E_AUTH, &err), MUSTER_E_AUTH);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(all_pages_are_read_and_stand_by_step),
        T(of_one_step_the_one_that_was_made_last_counts),
        T(one_without_its_final_name_is_listed_but_for_a_reader),
        T(a_reader_that_asks_for_the_newest_alone_asks_again_for_all),
        T(without_the_given_directory_the_brokers_path_stands),
        T(a_failure_leaves_an_empty_list),
        T(one_that_was_broken_off_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
