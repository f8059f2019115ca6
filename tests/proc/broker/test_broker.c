/* The real musterd, from outside: what it says when it starts and stops, and that nothing sent to
 * it stops it. */
#include "schema/error.h"
#include "schema/wire/wire.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define PATIENCE_MS 20000 /* sanitizers and two busy cores */
#define ARGUMENTS_MAX 24
#define ENDPOINT_SIZE 256
#define PORTS_FIRST 20000
#define PORTS_COUNT 5000

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    const char *musterd;
    pid_t pid; /* 0 = none runs */
    char commands[ENDPOINT_SIZE];
    char events[ENDPOINT_SIZE];
    void *context;
    void *dealer;
    struct arena arena;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void breathe(void)
{
    const struct timespec pause = {.tv_nsec = 2000000};

    nanosleep(&pause, NULL); /* between two looks at a condition */
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    scratch_make(f->dir);
    f->musterd = getenv("MUSTERD") != NULL ? getenv("MUSTERD") : MUSTERD_PATH;
    f->context = zmq_ctx_new();
    zmq_ctx_set(f->context, ZMQ_BLOCKY, 0);
    arena_init(&f->arena, 0);
    *state = f;
    return 0;
}

/* Starts musterd with "--db <dir>/<db>" and what follows; its stderr goes to <dir>/log. */
static pid_t start(struct fixture *f, const char *db, ...)
{
    char *argv[ARGUMENTS_MAX];
    int argc = 0;
    va_list more;
    pid_t pid;

    argv[argc++] = strdup(f->musterd);
    argv[argc++] = strdup("--db");
    argv[argc++] = strdup(scratch_path(f->dir, "%s", db));
    va_start(more, db);
    for (const char *word = va_arg(more, const char *); word != NULL;
         word = va_arg(more, const char *))
        argv[argc++] = strdup(word);
    va_end(more);
    argv[argc] = NULL;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int log = open(scratch_path(f->dir, "log"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

        dup2(log, STDERR_FILENO);
        execv(f->musterd, argv);
        _exit(127);
    }
    while (argc > 0)
        free(argv[--argc]);
    return pid;
}

/* The exit status as waitpid gives it. */
static int await_end(pid_t pid)
{
    int64_t until = now_ms() + PATIENCE_MS;
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() > until) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            fail_msg("musterd did not end");
        }
        breathe();
    }
    return status;
}

static void assert_exit(pid_t pid, int code)
{
    int status = await_end(pid);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void assert_log_has(struct fixture *f, const char *text)
{
    size_t size;
    char *log = scratch_read(scratch_path(f->dir, "log"), &size);

    if (strstr(log, text) == NULL)
        fail_msg("\"%s\" is not in: %s", text, log);
    free(log);
}

/* Waits for the port file and takes the endpoints from it. */
static void await_ready(struct fixture *f)
{
    const char *path = scratch_path(f->dir, "port");
    int64_t until = now_ms() + PATIENCE_MS;
    char *text;
    char *second;
    size_t size;

    while (!scratch_exists(path)) {
        int status;

        if (waitpid(f->pid, &status, WNOHANG) != 0 || now_ms() > until) {
            f->pid = 0;
            assert_log_has(f, "musterd is ready");
        }
        breathe();
    }
    text = scratch_read(path, &size);
    second = strchr(text, '\n');
    assert_non_null(second);
    *second++ = '\0';
    second[strcspn(second, "\n")] = '\0';
    snprintf(f->commands, sizeof f->commands, "%s", text);
    snprintf(f->events, sizeof f->events, "%s", second);
    free(text);
    unlink(path);
}

static void start_ready(struct fixture *f, const char *listen)
{
    f->pid = start(f, "muster.db", "--listen", listen, "--port-file", scratch_path(f->dir, "port"),
                   NULL);
    await_ready(f);
}

static const char *ipc(struct fixture *f)
{
    return scratch_path("ipc:/", "%s/sock", f->dir);
}

static void stop_cleanly(struct fixture *f)
{
    pid_t pid = f->pid;

    f->pid = 0;
    kill(pid, SIGTERM);
    assert_exit(pid, 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->pid > 0) {
        kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
    }
    if (f->dealer != NULL)
        zmq_close(f->dealer);
    zmq_ctx_term(f->context);
    arena_free(&f->arena);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

/* --- talking ---------------------------------------------------------------------------------- */

static void *connect_to(struct fixture *f, int type, const char *endpoint)
{
    void *socket = zmq_socket(f->context, type);
    int timeout = PATIENCE_MS;

    assert_non_null(socket);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(socket, ZMQ_SNDTIMEO, &timeout, sizeof timeout);
    if (type == ZMQ_SUB)
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "words", sizeof "words");
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    return socket;
}

static size_t hello_frame(uint64_t incarnation, uint64_t nonce, uint8_t *frame)
{
    const struct wire_msg hello = {
        .type = WIRE_HELLO,
        .up = {.job = "words", .role = ROLE_CHIEF, .rank = 0, .incarnation = incarnation},
        .u.hello = {.speaks = WIRE_SPEAKS,
                    .nonce = nonce,
                    .world_size = 1,
                    .host = "here",
                    .pid = 1,
                    .layout = LAYOUT_REPLICATED,
                    .checkpoint_dir = "/nowhere",
                    .phase = PHASE_JOINING},
    };
    size_t size = wire_encode(&hello, frame, WIRE_FRAME_MAX);

    assert_true(size > 0);
    return size;
}

/* The next message of that type on the dealer; others are skipped. */
static void await_type(struct fixture *f, enum wire_type type, struct wire_msg *message)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int64_t until = now_ms() + PATIENCE_MS;
    struct muster_error err;

    do {
        int size = zmq_recv(f->dealer, frame, sizeof frame, 0);

        if (size < 0)
            break;
        assert_int_equal(wire_decode(frame, (size_t)size, &f->arena, message, &err), MUSTER_OK);
        if (message->type == type)
            return;
    } while (now_ms() < until);
    fail_msg("no %s came", wire_type_name(type));
}

/* A node joins, over a connection of its own: the broker lives and decides. */
static struct wire_msg join(struct fixture *f, uint64_t incarnation)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t size = hello_frame(incarnation, 42, frame);
    struct wire_msg welcome;

    if (f->dealer != NULL)
        zmq_close(f->dealer);
    f->dealer = connect_to(f, ZMQ_DEALER, f->commands);
    assert_int_equal(zmq_send(f->dealer, frame, size, 0), (int)size);
    await_type(f, WIRE_WELCOME, &welcome);
    assert_int_equal(welcome.u.welcome.nonce, 42);
    return welcome;
}

/* The answer to a query, which needs no membership. */
static struct wire_msg ask(struct fixture *f, const char *name)
{
    const struct wire_msg query = {.type = WIRE_QUERY,
                                   .up = {.request = 1, .job = "", .role = ROLE_TOOL},
                                   .u.query = {.name = name, .text_arg = ""}};
    uint8_t frame[WIRE_FRAME_MAX];
    size_t size = wire_encode(&query, frame, sizeof frame);
    struct wire_msg rows;

    if (f->dealer == NULL)
        f->dealer = connect_to(f, ZMQ_DEALER, f->commands);
    assert_int_equal(zmq_send(f->dealer, frame, size, 0), (int)size);
    await_type(f, WIRE_ROWS, &rows);
    return rows;
}

/* --- start and stop --------------------------------------------------------------------------- */

static void it_serves_on_ipc_and_ends_cleanly(void **state)
{
    struct fixture *f = *state;
    char expected[ENDPOINT_SIZE];

    start_ready(f, ipc(f));
    assert_string_equal(f->commands, ipc(f));
    snprintf(expected, sizeof expected, "%.200s.events", ipc(f));
    assert_string_equal(f->events, expected);
    assert_string_equal(join(f, 7).u.welcome.events_endpoint, expected);
    stop_cleanly(f);
    assert_false(scratch_exists(scratch_path(f->dir, "muster.db-wal"))); /* checkpointed away */
    assert_log_has(f, "musterd has ended");
}

static void it_serves_on_free_tcp_ports_and_ends_cleanly(void **state)
{
    struct fixture *f = *state;

    start_ready(f, "tcp://127.0.0.1:*");
    assert_int_equal(strncmp(f->commands, "tcp://127.0.0.1:", 16), 0);
    assert_string_not_equal(f->commands, f->events);
    assert_string_equal(join(f, 7).u.welcome.events_endpoint, f->events);
    stop_cleanly(f);
}

static bool is_free(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool free_now;

    assert_true(fd >= 0);
    free_now = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    close(fd);
    return free_now;
}

/* Two in a row, below those that Linux gives to whoever asks for any: beside another test, one of
 * these may be taken before musterd asks for it. */
static int two_free_ports(void)
{
    int port = PORTS_FIRST + (int)(getpid() % PORTS_COUNT);

    for (int tries = 0; tries < PORTS_COUNT; tries++, port++)
        if (is_free(port) && is_free(port + 1))
            return port;
    fail_msg("no two free ports in a row below %d", port);
    return 0;
}

static void events_use_the_next_port(void **state)
{
    struct fixture *f = *state;
    char listen[64];
    int port = two_free_ports();

    snprintf(listen, sizeof listen, "tcp://127.0.0.1:%d", port);
    start_ready(f, listen);
    assert_string_equal(f->commands, listen);
    assert_int_equal(atoi(strrchr(f->events, ':') + 1), port + 1);
}

static void what_was_welcomed_is_known_after_kill_9(void **state)
{
    struct fixture *f = *state;
    struct wire_msg welcome;
    uint64_t epoch;

    start_ready(f, ipc(f));
    welcome = join(f, 7);
    epoch = welcome.down.broker_epoch;
    kill(f->pid, SIGKILL);
    await_end(f->pid);
    start_ready(f, ipc(f)); /* over the socket that was left behind */
    welcome = join(f, 7);
    assert_true(welcome.down.broker_epoch > epoch);
    assert_int_equal(welcome.u.welcome.generation, 1); /* the same one: it was committed */
    assert_int_equal(ask(f, "jobs").u.rows.rows, 1);
}

/* A process of a job of its own comes, and leaves at once if it is a rank. */
static void come_and_go(void *dealer, uint64_t number, enum wire_role role)
{
    char job[32];
    uint8_t frame[WIRE_FRAME_MAX];
    struct wire_msg message = {.type = WIRE_HELLO,
                               .up = {.job = job, .role = role, .incarnation = 1000 + number},
                               .u.hello = {.speaks = WIRE_SPEAKS,
                                           .nonce = number + 1,
                                           .world_size = 1,
                                           .host = "here",
                                           .layout = LAYOUT_REPLICATED,
                                           .checkpoint_dir = "/nowhere",
                                           .phase = PHASE_JOINING}};
    size_t size;

    snprintf(job, sizeof job, "stranger-%llu", (unsigned long long)number);
    size = wire_encode(&message, frame, sizeof frame);
    assert_int_equal(zmq_send(dealer, frame, size, 0), (int)size);
    if (role != ROLE_CHIEF)
        return;
    message.type = WIRE_LEAVE;
    message.up.request = 1;
    message.u.leave = (struct wire_leave){.why = LEAVE_FINISHED};
    size = wire_encode(&message, frame, sizeof frame);
    assert_int_equal(zmq_send(dealer, frame, size, 0), (int)size);
}

static void come_and_go_all(struct fixture *f, uint64_t count, enum wire_role role)
{
    uint8_t frame[WIRE_FRAME_MAX];

    if (f->dealer != NULL)
        zmq_close(f->dealer);
    f->dealer = connect_to(f, ZMQ_DEALER, f->commands);
    for (uint64_t number = 0; number < count; number++) {
        come_and_go(f->dealer, number, role);
        while (zmq_recv(f->dealer, frame, sizeof frame, ZMQ_DONTWAIT) >= 0) {
        }
        if (number % 100 == 99) /* their answers fit into the queue to one socket: COMMAND_HWM */
            ask(f, "jobs");
    }
    ask(f, "jobs"); /* its answer is behind theirs */
}

static void names_of_jobs_that_begin_nothing_fill_nothing(void **state)
{
    struct fixture *f = *state;

    start_ready(f, ipc(f));
    come_and_go_all(f, 5000, ROLE_EVALUATOR);
    join(f, 7);
    assert_int_equal(ask(f, "jobs").u.rows.rows, 1);
}

static void jobs_that_have_ended_keep_no_other_out_also_after_a_start(void **state)
{
    struct fixture *f = *state;

    start_ready(f, ipc(f));
    come_and_go_all(f, 1500, ROLE_CHIEF);
    join(f, 7);
    kill(f->pid, SIGKILL);
    await_end(f->pid);
    start_ready(f, ipc(f));
    join(f, 7);
    come_and_go_all(f, 1, ROLE_CHIEF); /* the first comes again: it is loaded from its rows */
    stop_cleanly(f);
}

static void a_probe_comes_back_on_the_topic(void **state)
{
    struct fixture *f = *state;
    struct wire_msg probe = {.type = WIRE_PROBE_GET,
                             .up = {.job = "words", .role = ROLE_CHIEF, .incarnation = 7},
                             .u.probe_get = {.nonce = 99}};
    uint8_t frame[WIRE_FRAME_MAX];
    int64_t until = now_ms() + PATIENCE_MS;
    struct wire_msg heard = {.type = WIRE_NONE};
    struct muster_error err;
    struct wire_msg welcome;
    int short_wait = 100;
    void *sub;

    start_ready(f, "tcp://127.0.0.1:*");
    welcome = join(f, 7);
    probe.up.generation = welcome.u.welcome.generation;
    sub = connect_to(f, ZMQ_SUB, f->events);
    zmq_setsockopt(sub, ZMQ_RCVTIMEO, &short_wait, sizeof short_wait);
    while (heard.type != WIRE_PROBE && now_ms() < until) {
        size_t size = wire_encode(&probe, frame, sizeof frame);
        int got;

        zmq_send(f->dealer, frame, size, 0);
        if (zmq_recv(sub, frame, sizeof frame, 0) < 0)
            continue;
        assert_string_equal((const char *)frame, "words"); /* with its NUL */
        got = zmq_recv(sub, frame, sizeof frame, 0);
        assert_int_equal(wire_decode(frame, (size_t)got, &f->arena, &heard, &err), MUSTER_OK);
    }
    assert_int_equal(heard.u.probe.nonce, 99);
    zmq_close(sub);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void a_second_one_on_the_same_database_is_refused(void **state)
{
    struct fixture *f = *state;
    char pid[32];
    pid_t second;

    start_ready(f, ipc(f));
    second = start(f, "muster.db", "--listen", "tcp://127.0.0.1:*", NULL);
    assert_exit(second, 1);
    snprintf(pid, sizeof pid, "pid %ld", (long)f->pid);
    assert_log_has(f, "MUSTER_E_LOCKED");
    assert_log_has(f, pid);
    join(f, 7); /* the first did not notice */
}

/* As a musterd that was killed does until the kernel has closed its sockets. */
static void a_lock_that_is_soon_given_up_is_waited_for(void **state)
{
    struct fixture *f = *state;
    const char *path = scratch_path(f->dir, "muster.db.lock");
    int64_t until;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    f->pid = start(f, "muster.db", "--listen", ipc(f), "--port-file", scratch_path(f->dir, "port"),
                   NULL);
    for (until = now_ms() + 700; now_ms() < until;) {
        assert_int_equal(waitpid(f->pid, NULL, WNOHANG), 0);
        breathe();
    }
    close(fd);
    await_ready(f);
    stop_cleanly(f);
}

static void another_one_on_the_same_socket_is_refused(void **state)
{
    struct fixture *f = *state;

    start_ready(f, ipc(f));
    assert_exit(start(f, "other.db", "--listen", ipc(f), NULL), 1);
    assert_log_has(f, "another process listens");
    assert_false(scratch_exists(scratch_path(f->dir, "other.db"))); /* nor its lock */
    assert_false(scratch_exists(scratch_path(f->dir, "other.db.lock")));
    join(f, 7);
}

static void a_damaged_database_is_refused_and_kept(void **state)
{
    struct fixture *f = *state;
    const char *db = scratch_path(f->dir, "muster.db");
    size_t size;
    char *before;
    char *after;

    start_ready(f, ipc(f));
    join(f, 7);
    stop_cleanly(f);
    for (size_t i = 0; i < 4096; i++)
        scratch_flip_bit(db, 4096 + i, (int)(i % 8));
    before = scratch_read(db, &size);
    assert_exit(start(f, "muster.db", "--listen", ipc(f), NULL), 1);
    assert_log_has(f, "MUSTER_E_CORRUPT");
    after = scratch_read(db, &size);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

static void usage_is_explained_with_exit_code_2(void **state)
{
    struct fixture *f = *state;

    assert_exit(start(f, "x.db", "--frobnicate", NULL), 2);
    assert_log_has(f, "--frobnicate");
    assert_log_has(f, "--help");
    assert_exit(start(f, "x.db", "--listen", "tcp://0.0.0.0:7700", NULL), 2);
    assert_log_has(f, "muster key add NAME");
    assert_false(scratch_exists(scratch_path(f->dir, "x.db")));
}

/* --- bad input -------------------------------------------------------------------------------- */

static uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void send_noise(void *dealer, uint64_t *seed)
{
    uint8_t frame[256];
    size_t size = random_next(seed) % sizeof frame;

    for (size_t i = 0; i < size; i++)
        frame[i] = (uint8_t)random_next(seed);
    zmq_send(dealer, frame, size, 0);
}

/* A HELLO with one byte changed, or cut: nearly right is the hardest. */
static void send_almost_hello(void *dealer, uint64_t *seed)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t size = hello_frame(1000 + random_next(seed) % 4, 1, frame);

    if (random_next(seed) % 4 == 0)
        size = random_next(seed) % size;
    else
        frame[random_next(seed) % size] = (uint8_t)random_next(seed);
    zmq_send(dealer, frame, size, 0);
}

/* Every message number, known or not, with a body that suits none; and every empty known one. */
static void send_every_type(void *dealer)
{
    for (unsigned type = 0; type < 128; type++) {
        const uint8_t odd[] = {0x93, WIRE_VERSION, (uint8_t)type, 0xc0};
        struct wire_msg message = {.type = (enum wire_type)type};
        uint8_t frame[WIRE_FRAME_MAX];
        size_t size = type < WIRE_TYPE_MAX && wire_is_up(type)
                          ? wire_encode(&message, frame, sizeof frame)
                          : 0;

        zmq_send(dealer, odd, sizeof odd, 0);
        if (size > 0)
            zmq_send(dealer, frame, size, 0);
    }
}

static void send_other_versions(void *dealer)
{
    for (unsigned version = 0; version < 128; version++) {
        const uint8_t frame[] = {0x92, (uint8_t)version, WIRE_HELLO};

        zmq_send(dealer, frame, sizeof frame, 0);
    }
}

static void send_parts(void *dealer)
{
    for (int parts = 2; parts < 100; parts += 13) {
        for (int i = 0; i < parts; i++)
            zmq_send(dealer, "part", 4, i + 1 < parts ? ZMQ_SNDMORE : 0);
    }
}

/* libzmq at the broker cuts this connection. */
static void send_oversized(struct fixture *f)
{
    static uint8_t frame[4 * WIRE_FRAME_MAX];
    void *dealer = connect_to(f, ZMQ_DEALER, f->commands);

    zmq_send(dealer, frame, sizeof frame, 0);
    zmq_close(dealer);
}

/* Not even ZMTP. */
static void send_raw_tcp(struct fixture *f, uint64_t *seed)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(strrchr(f->commands, ':') + 1)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    uint8_t noise[512];

    for (int i = 0; i < 20; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        for (size_t b = 0; b < sizeof noise; b++)
            noise[b] = (uint8_t)random_next(seed);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
        if (send(fd, noise, sizeof noise, MSG_NOSIGNAL) < 0)
            assert_true(errno == EPIPE || errno == ECONNRESET);
        close(fd);
    }
}

static void nothing_that_is_sent_stops_it(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
    void *dealer;

    start_ready(f, "tcp://127.0.0.1:*");
    dealer = connect_to(f, ZMQ_DEALER, f->commands);
    for (int i = 0; i < 2000; i++) {
        send_noise(dealer, &seed);
        send_almost_hello(dealer, &seed);
    }
    send_every_type(dealer);
    send_other_versions(dealer);
    send_parts(dealer);
    send_oversized(f);
    send_raw_tcp(f, &seed);
    assert_int_equal(ask(f, "jobs").u.rows.code, MUSTER_OK);
    assert_int_equal(ask(f, "no such query").u.rows.code, MUSTER_E_NOT_FOUND);
    zmq_close(dealer);
    assert_int_equal(waitpid(f->pid, NULL, WNOHANG), 0);
    stop_cleanly(f);
    assert_log_has(f, "dropped messages");
}

static void a_wrong_version_is_told_so(void **state)
{
    const uint8_t frame[] = {0x92, WIRE_VERSION + 1, WIRE_HELLO};
    struct fixture *f = *state;
    struct wire_msg refused;

    start_ready(f, ipc(f));
    f->dealer = connect_to(f, ZMQ_DEALER, f->commands);
    zmq_send(f->dealer, frame, sizeof frame, 0);
    await_type(f, WIRE_REFUSED, &refused);
    assert_int_equal(refused.u.refused.code, MUSTER_E_VERSION);
    assert_false(refused.u.refused.retry);
}

/* --- crashes ---------------------------------------------------------------------------------- */

static void killed_between_commit_and_send_it_answers_the_repeat(void **state)
{
    struct fixture *f = *state;
    uint8_t frame[WIRE_FRAME_MAX];
    size_t size = hello_frame(7, 42, frame);
    const char *built = getenv("MUSTER_FAIL_POINTS_BUILT");
    int status;

    if (built == NULL || strcmp(built, "1") != 0)
        skip();
    setenv("MUSTER_FAIL_POINT", "commit_after:event-generation-opened", 1);
    start_ready(f, ipc(f));
    unsetenv("MUSTER_FAIL_POINT");
    f->dealer = connect_to(f, ZMQ_DEALER, f->commands);
    zmq_send(f->dealer, frame, size, 0);
    status = await_end(f->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    start_ready(f, ipc(f));
    assert_int_equal(ask(f, "jobs").u.rows.rows, 1); /* what it never told is there */
    assert_int_equal(join(f, 7).u.welcome.generation, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_serves_on_ipc_and_ends_cleanly),
        TEST(it_serves_on_free_tcp_ports_and_ends_cleanly),
        TEST(events_use_the_next_port),
        TEST(what_was_welcomed_is_known_after_kill_9),
        TEST(names_of_jobs_that_begin_nothing_fill_nothing),
        TEST(jobs_that_have_ended_keep_no_other_out_also_after_a_start),
        TEST(a_probe_comes_back_on_the_topic),
        TEST(a_second_one_on_the_same_database_is_refused),
        TEST(a_lock_that_is_soon_given_up_is_waited_for),
        TEST(another_one_on_the_same_socket_is_refused),
        TEST(a_damaged_database_is_refused_and_kept),
        TEST(usage_is_explained_with_exit_code_2),
        TEST(nothing_that_is_sent_stops_it),
        TEST(a_wrong_version_is_told_so),
        TEST(killed_between_commit_and_send_it_answers_the_repeat),
    };

    return cmocka_run_group_tests_name("broker", tests, NULL, NULL);
}
