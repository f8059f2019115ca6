/* supervised: the error file says why, once and whole; the life file's lock ends with the process.
 */
#include "node/agent/supervised.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct supervised_facts facts = {.job = "job",
                                              .role = "worker",
                                              .host = "h1",
                                              .broker = "tcp://h0:7700",
                                              .rank = 2,
                                              .world_size = 4,
                                              .generation = 3,
                                              .incarnation = 0xabcdef};

struct files {
    struct supervised supervised;
    char dir[SCRATCH_PATH_MAX];
    char error[SCRATCH_PATH_MAX], torch[SCRATCH_PATH_MAX], life[SCRATCH_PATH_MAX];
};

static int setup(void **state)
{
    struct files *f = calloc(1, sizeof *f);

    scratch_make(f->dir);
    snprintf(f->error, sizeof f->error, "%s", scratch_path(f->dir, "error.json"));
    snprintf(f->torch, sizeof f->torch, "%s", scratch_path(f->dir, "torch.json"));
    snprintf(f->life, sizeof f->life, "%s", scratch_path(f->dir, "life"));
    setenv("MUSTER_ERROR_FILE", f->error, 1);
    setenv("TORCHELASTIC_ERROR_FILE", f->torch, 1);
    setenv("MUSTER_LIFE_FILE", f->life, 1);
    supervised_init(&f->supervised);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct files *f = *state;

    supervised_leaves(&f->supervised);
    unsetenv("MUSTER_ERROR_FILE");
    unsetenv("TORCHELASTIC_ERROR_FILE");
    unsetenv("MUSTER_LIFE_FILE");
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static struct muster_error failed(const char *text)
{
    struct muster_error error = {.status = MUSTER_E_STEP, .rank = -1, .code = 7, .step = 30};

    snprintf(error.text, sizeof error.text, "%s", text);
    return error;
}

static json_t *load(const char *path)
{
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(document);
    return document;
}

static const char *text_of(json_t *document, const char *key)
{
    return json_string_value(json_object_get(document, key));
}

static json_int_t number_of(json_t *document, const char *key)
{
    assert_true(json_is_integer(json_object_get(document, key)));
    return json_integer_value(json_object_get(document, key));
}

static void the_error_file_has_every_field(void **state)
{
    struct files *f = *state;
    struct muster_error error = failed("a \"quoted\"\nline of ä");
    json_t *document;

    supervised_error(&f->supervised, &facts, &error);
    document = load(f->error);
    assert_int_equal(number_of(document, "schema_version"), 1);
    assert_string_equal(text_of(document, "job"), "job");
    assert_string_equal(text_of(document, "role"), "worker");
    assert_int_equal(number_of(document, "rank"), 2);
    assert_int_equal(number_of(document, "world_size"), 4);
    assert_string_equal(text_of(document, "host"), "h1");
    assert_int_equal(number_of(document, "pid"), getpid());
    assert_int_equal(number_of(document, "generation"), 3);
    assert_string_equal(text_of(document, "incarnation"), "0000000000abcdef");
    assert_string_equal(text_of(document, "status"), "MUSTER_E_STEP");
    assert_int_equal(number_of(document, "code"), 7);
    assert_int_equal(number_of(document, "step"), 30);
    assert_int_equal(number_of(document, "error_rank"), 2);
    assert_string_equal(text_of(document, "text"), "a \"quoted\"\nline of ä");
    assert_true(number_of(document, "unix_ms") > 1600000000000);
    json_decref(document);
}

/* As torch.distributed.elastic reads it: message.message and message.extraInfo.timestamp. */
static void torchrun_finds_its_fields(void **state)
{
    struct files *f = *state;
    struct muster_error error = failed("why");
    json_t *document, *message;

    supervised_error(&f->supervised, &facts, &error);
    document = load(f->torch);
    message = json_object_get(document, "message");
    assert_string_equal(text_of(message, "message"), "why");
    assert_true(strtol(text_of(json_object_get(message, "extraInfo"), "timestamp"), NULL, 10) >
                1600000000);
    json_decref(document);
}

static void a_file_of_torchrun_s_own_is_kept(void **state)
{
    struct files *f = *state;
    struct muster_error error = failed("why");
    char text[16] = "";
    FILE *file = fopen(f->torch, "we");

    assert_non_null(file);
    fputs("its own", file);
    fclose(file);
    supervised_error(&f->supervised, &facts, &error);
    file = fopen(f->torch, "re");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "its own");
    assert_int_equal(access(f->error, F_OK), 0);
}

static void who_is_preempted_leaves_a_word(void **state)
{
    struct files *f = *state;
    char text[128] = "";
    FILE *file;
    size_t got;

    supervised_joins(&f->supervised, &facts);
    supervised_says(&f->supervised, "told to end by file:\na");
    supervised_leaves(&f->supervised);
    file = fopen(f->life, "re");
    assert_non_null(file);
    got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_int_equal(got, strlen(text));
    assert_string_equal(text, "muster-left 1\ntold to end by file: a\n");
}

static void the_first_error_stays(void **state)
{
    struct files *f = *state;
    struct muster_error first = failed("first"), second = failed("second");
    json_t *document;

    supervised_error(&f->supervised, &facts, &first);
    supervised_error(&f->supervised, &facts, &second);
    document = load(f->error);
    assert_string_equal(text_of(document, "text"), "first");
    json_decref(document);
}

static void another_rank_s_error_names_it(void **state)
{
    struct files *f = *state;
    struct muster_error error = failed("rank 1 failed");
    json_t *document;

    error.status = MUSTER_E_PEER;
    error.rank = 1;
    supervised_error(&f->supervised, &facts, &error);
    document = load(f->error);
    assert_int_equal(number_of(document, "error_rank"), 1);
    assert_int_equal(number_of(document, "rank"), 2);
    json_decref(document);
}

static void nothing_is_written_where_nobody_asked(void **state)
{
    struct files *f = *state;
    struct muster_error error = failed("why");

    unsetenv("MUSTER_ERROR_FILE");
    unsetenv("TORCHELASTIC_ERROR_FILE");
    unsetenv("MUSTER_LIFE_FILE");
    supervised_init(&f->supervised);
    supervised_joins(&f->supervised, &facts);
    supervised_error(&f->supervised, &facts, &error);
    assert_int_not_equal(access(f->error, F_OK), 0);
    assert_int_not_equal(access(f->life, F_OK), 0);
}

/* --- the life file ---------------------------------------------------------------------------- */

static bool is_locked(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETLK, &lock), 0);
    close(fd);
    return lock.l_type != F_UNLCK;
}

static size_t size_of(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t size = 0;

    assert_non_null(file);
    while (fgetc(file) != EOF)
        size++;
    fclose(file);
    return size;
}

/* In a child, which tells its state by a pipe and waits for the end of another. */
static pid_t node_process(struct files *f, bool leaves, int *ret_hold_fd)
{
    int up[2], hold[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        close(hold[1]);
        supervised_joins(&f->supervised, &facts);
        if (leaves)
            supervised_leaves(&f->supervised);
        if (write(up[1], "u", 1) == 1 && read(hold[0], &byte, 1) < 0)
            _exit(1);
        _exit(0);
    }
    close(up[1]);
    close(hold[0]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    close(up[0]);
    *ret_hold_fd = hold[1];
    return pid;
}

static void a_killed_process_leaves_its_name_without_a_lock(void **state)
{
    static const char expected[] = "muster-life 1\n0000000000abcdef\n2\njob\ntcp://h0:7700\n";
    struct files *f = *state;
    char text[sizeof expected] = "";
    FILE *file;
    int hold;
    pid_t pid = node_process(f, false, &hold);

    assert_true(is_locked(f->life));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(is_locked(f->life));
    file = fopen(f->life, "re");
    assert_int_equal(fread(text, 1, sizeof text - 1, file), sizeof text - 1);
    fclose(file);
    assert_string_equal(text, expected);
    close(hold);
}

static void who_left_is_no_longer_named(void **state)
{
    struct files *f = *state;
    int hold;
    pid_t pid = node_process(f, true, &hold);

    assert_false(is_locked(f->life));
    assert_int_equal(size_of(f->life), 0);
    close(hold);
    waitpid(pid, NULL, 0);
}

static void read_life(struct files *f, char *ret_text, size_t size)
{
    FILE *file = fopen(f->life, "re");

    assert_non_null(file);
    ret_text[fread(ret_text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void the_first_step_is_a_last_line_of_the_life(void **state)
{
    struct files *f = *state;
    char text[256];

    supervised_joins(&f->supervised, &facts);
    supervised_starts(&f->supervised);
    supervised_starts(&f->supervised);
    read_life(f, text, sizeof text);
    assert_string_equal(text, "muster-life 1\n0000000000abcdef\n2\njob\ntcp://h0:7700\nstarted\n");
}

/* A program without standard input: the first file that it opens has the number 0. */
static void a_life_file_may_have_the_number_0(void **state)
{
    struct files *f = *state;
    int kept = dup(STDIN_FILENO);
    char text[256];

    close(STDIN_FILENO);
    supervised_joins(&f->supervised, &facts);
    assert_int_equal(f->supervised.life_fd, STDIN_FILENO);
    supervised_starts(&f->supervised);
    read_life(f, text, sizeof text);
    supervised_leaves(&f->supervised);
    if (kept >= 0) {
        dup2(kept, STDIN_FILENO);
        close(kept);
    }
    assert_non_null(strstr(text, "started"));
}

static void who_finished_says_so_for_good(void **state)
{
    struct files *f = *state;
    char text[256];

    supervised_joins(&f->supervised, &facts);
    supervised_finished(&f->supervised);
    supervised_leaves(&f->supervised);
    read_life(f, text, sizeof text);
    assert_string_equal(text, "muster-finished 1\n");
}

static void a_second_process_does_not_take_the_name(void **state)
{
    struct files *f = *state;
    struct supervised_facts other = facts;
    int hold;
    pid_t pid = node_process(f, false, &hold);
    size_t size = size_of(f->life);

    other.job = "another-job-with-a-long-name";
    supervised_joins(&f->supervised, &other);
    assert_int_equal(size_of(f->life), size);
    close(hold);
    waitpid(pid, NULL, 0);
    supervised_joins(&f->supervised, &other); /* the first is gone: now it may */
    assert_true(size_of(f->life) > size);
}

/* The parent's node was the process's own when it forked, and has left by the time that the child's
 * joins. */
static void a_child_s_own_node_has_its_own_life(void **state)
{
    struct files *f = *state;
    struct supervised own;
    struct supervised_facts its_facts = facts;
    int go[2], up[2];
    char byte;
    pid_t pid;

    supervised_joins(&f->supervised, &facts);
    supervised_init(&own);
    its_facts.job = "another-job";
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        supervised_joins(&own, &its_facts);
        _exit(write(up[1], "u", 1) == 1 && read(go[0], &byte, 1) == 0 ? 0 : 2);
    }
    close(up[1]);
    supervised_leaves(&f->supervised);
    assert_int_equal(size_of(f->life), 0);
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(read(up[0], &byte, 1), 1);
    assert_true(is_locked(f->life));
    assert_true(size_of(f->life) > 0);
    close(go[0]);
    close(go[1]);
    close(up[0]);
    waitpid(pid, NULL, 0);
    assert_false(is_locked(f->life)); /* its death is known */
    assert_true(size_of(f->life) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_error_file_has_every_field),
        TEST(torchrun_finds_its_fields),
        TEST(a_file_of_torchrun_s_own_is_kept),
        TEST(the_first_error_stays),
        TEST(another_rank_s_error_names_it),
        TEST(nothing_is_written_where_nobody_asked),
        TEST(a_killed_process_leaves_its_name_without_a_lock),
        TEST(who_left_is_no_longer_named),
        TEST(who_is_preempted_leaves_a_word),
        TEST(the_first_step_is_a_last_line_of_the_life),
        TEST(a_life_file_may_have_the_number_0),
        TEST(who_finished_says_so_for_good),
        TEST(a_second_process_does_not_take_the_name),
        TEST(a_child_s_own_node_has_its_own_life),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
