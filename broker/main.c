/* musterd - the broker: takes its state, opens its sockets, runs the loop, leaves cleanly.
 * Order at start: signals, state lock and database, sockets, the core's start committed, port file.
 * A failure of the running loop ends the process at once, without closing the database: the next
 * start reads what was committed. */
#include "broker/base/clock.h"
#include "broker/base/dirs.h"
#include "broker/base/failpoint.h"
#include "broker/bus.h"
#include "broker/bus_guard.h"
#include "broker/config.h"
#include "broker/core/contract/core.h"
#include "broker/json_memory.h"
#include "broker/log.h"
#include "broker/loop.h"
#include "broker/metrics.h"
#include "broker/relay.h"
#include "broker/service.h"
#include "broker/store/shared.h"
#include "broker/store/store.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAIT_MS \
    3000 /* the kernel closes some 2,000 sockets of a killed musterd in half a second */

#define MIGRATE_WAIT_MS 10000

#define WAS_WITH "_MUSTERD_WAS_WITH"         /* the same: shared_id */
#define BEGAN_BEFORE "_MUSTERD_BEGAN_BEFORE" /* for the program that takes this one's place */

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct program {
    struct config config;
    int signal_fd;
    char **argv;
    struct bus_keys *keys;
    struct shared *shared;
    struct store *store;
    struct bus *bus;
    struct core *core;
    struct loop *loop;
    struct metrics *metrics;
    _Atomic bool said_ready; /* as a standby; the thread that keeps the lease says it, too */
};

/* libzmq's threads take over this thread's mask, so this comes before the first socket. */
static enum muster_status main_take_signals(int *ret_fd, struct muster_error *err)
{
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk, not a death sentence */
    sigprocmask(SIG_BLOCK, &stop, NULL);
    *ret_fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*ret_fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot watch signals: %s", strerror(errno));
    return MUSTER_OK;
}

/* libzmq makes its connections and reads them through these: see bus_guard.h. The linker shows them
 * to it, since a library that is linked calls them. */
#define INSTEAD_OF(name) __asm__(name) __attribute__((visibility("default"), used))

ssize_t instead_of_recv(int fd, void *data, size_t size, int flags) INSTEAD_OF("recv");
int instead_of_accept4(int fd, struct sockaddr *address, socklen_t *address_size, int flags)
    INSTEAD_OF("accept4");
int instead_of_accept(int fd, struct sockaddr *address, socklen_t *address_size)
    INSTEAD_OF("accept");
ssize_t instead_of_send(int fd, const void *data, size_t size, int flags) INSTEAD_OF("send");
int instead_of_close(int fd) INSTEAD_OF("close");
int instead_of_crypto_box_open(unsigned char *plain, const unsigned char *box,
                               unsigned long long size, const unsigned char *nonce,
                               const unsigned char *public_key, const unsigned char *secret_key)
    INSTEAD_OF("crypto_box_open");

ssize_t instead_of_recv(int fd, void *data, size_t size, int flags)
{
    return bus_guard_recv(fd, data, size, flags);
}

int instead_of_accept4(int fd, struct sockaddr *address, socklen_t *address_size, int flags)
{
    return bus_guard_accept(fd, address, address_size, flags);
}

int instead_of_accept(int fd, struct sockaddr *address, socklen_t *address_size)
{
    return bus_guard_accept(fd, address, address_size, 0);
}

ssize_t instead_of_send(int fd, const void *data, size_t size, int flags)
{
    return bus_guard_send(fd, data, size, flags);
}

int instead_of_close(int fd)
{
    return bus_guard_close(fd);
}

int instead_of_crypto_box_open(unsigned char *plain, const unsigned char *box,
                               unsigned long long size, const unsigned char *nonce,
                               const unsigned char *public_key, const unsigned char *secret_key)
{
    return bus_guard_box_open(plain, box, size, nonce, public_key, secret_key);
}

/* Two connections a node. */
static enum muster_status main_take_files(struct muster_error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot ask for the limit of open files: %s",
                              strerror(errno));
    if (limit.rlim_cur < limit.rlim_max) {
        const struct rlimit raised = {limit.rlim_max, limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
        else
            broker_log(LOG_LEVEL_WARNING, "cannot raise the limit of open files: %s",
                       strerror(errno));
    }
    broker_log(LOG_LEVEL_INFO, "open files: at most %llu, enough for about %llu nodes",
               (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_cur / 4);
    if (!bus_guard_start((size_t)limit.rlim_cur))
        return error_set(err, MUSTER_E_NOMEM, "no memory to watch connections");
    return MUSTER_OK;
}

/* The file is complete before it gets its name: whoever sees the file sees both lines. */
static enum muster_status main_write_port_file(const char *path, const struct bus *bus,
                                               struct muster_error *err)
{
    char part[PATH_MAX];
    char text[2 * PATH_MAX];
    int length = snprintf(text, sizeof text, "%s\n%s\n", bus_command_endpoint(bus),
                          bus_events_endpoint(bus));
    int fd;
    bool ok;

    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                         path);
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ok = fd >= 0 && write(fd, text, (size_t)length) == length;
    if (fd >= 0)
        close(fd);
    if (ok && rename(part, path) == 0)
        return MUSTER_OK;
    error_set_code(err, MUSTER_E_IO, errno,
                   "cannot write the port file %s: %s; choose another with --port-file", path,
                   strerror(errno));
    if (fd >= 0)
        unlink(part);
    return MUSTER_E_IO;
}

static enum muster_status main_make_core(struct program *program, struct muster_error *err)
{
    struct core_options options = {
        .events_endpoint = bus_events_endpoint(program->bus),
        .join_timeout_ms = program->config.join_timeout_ms,
        .keep_jobs = (size_t)program->config.keep_jobs,
        .keep_jobs_days = program->config.keep_jobs_days,
        .signer = program->config.sign ? bus_keys_sign(program->keys)->public_text : NULL,
    };

    while (options.start_id == 0) {
        if (getrandom(&options.start_id, sizeof options.start_id, 0) < 0)
            return error_set_code(err, MUSTER_E_IO, errno, "no random numbers: %s",
                                  strerror(errno));
    }
    program->core = core_create(&options);
    if (program->core != NULL)
        program->loop =
            loop_create(program->store, program->bus, program->core, program->signal_fd);
    if (program->loop == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to start");
    return MUSTER_OK;
}

/* Behind a number of milliseconds, which changes each time. */
static const char *main_past_ms(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return strncmp(text + digits, " ms", 3) == 0 ? text + digits : text;
}

static bool main_is_said(const char *text, const char *said)
{
    for (;; text++, said++) {
        text = main_past_ms(text);
        said = main_past_ms(said);
        if (*text != *said)
            return false;
        if (*text == '\0')
            return true;
    }
}

/* The first time, and when it changes. */
static void main_say_standby(const struct shared *shared, enum muster_status status,
                             const struct muster_error *err, struct muster_error *said)
{
    if (said->status == status && main_is_said(err->text, said->text))
        return;
    *said = *err;
    said->status = status;
    if (status == MUSTER_E_LOCKED)
        broker_log(shared_is_older(shared) ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "standby: %s",
                   err->text);
    else
        broker_log(LOG_LEVEL_WARNING, "standby, not active: %s; trying again", err->text);
}

/* A standby counts as started, even if its take-over takes longer than a service has to start. */
static void main_is_standby(struct program *program)
{
    if (!program->said_ready)
        service_ready();
    program->said_ready = true;
    service_alive(clock_ms(CLOCK_BOOTTIME));
}

/* Called at each step of a take-over, which may take minutes. Nothing is lost if it ends in the
 * middle, so a signal ends it at once. */
static void main_is_alive(void *arg)
{
    struct program *program = arg;
    struct pollfd fd = {.fd = program->signal_fd, .events = POLLIN};

    main_is_standby(program);
    if (poll(&fd, 1, 0) <= 0)
        return;
    shared_give_up(program->shared);
    broker_log(LOG_LEVEL_INFO, "musterd has ended; it could not take over");
    _exit(EXIT_DONE);
}

/* db: where this program's copy is. */
static enum muster_status main_open_shared(struct program *program, const char *db,
                                           struct muster_error *err)
{
    const bool migrates = program->config.migrate;
    char owner[PATH_MAX];
    char host[65] = "?";
    const struct shared_options options = {.uri = program->config.shared,
                                           .path = db,
                                           .owner = owner,
                                           .known = getenv(BEGAN_BEFORE) != NULL,
                                           .id = getenv(WAS_WITH),
                                           .alive_fn = migrates ? NULL : main_is_alive,
                                           .arg = program};

    if (program->config.shared == NULL)
        return MUSTER_OK;
    gethostname(host, sizeof host - 1);
    snprintf(owner, sizeof owner, "musterd %s %s (process %ld on %s)", migrates ? "with" : "at",
             migrates ? "--migrate" : program->config.listen, (long)getpid(), host);
    return shared_open(&options, &program->shared, err);
}

/* A standby has no socket: nodes and tools go on to the next address of their list. */
static enum muster_status main_await_lease(struct program *program, bool *ret_stop,
                                           struct muster_error *err)
{
    struct pollfd fd = {.fd = program->signal_fd, .events = POLLIN};
    struct muster_error said = {.status = MUSTER_OK};
    enum muster_status status = main_open_shared(program, program->config.db, err);

    if (status != MUSTER_OK || program->shared == NULL)
        return status;
    while ((status = shared_take(program->shared, err)) == MUSTER_E_LOCKED ||
           status == MUSTER_E_STORAGE) {
        main_is_standby(program);
        main_say_standby(program->shared, status, err, &said);
        if (poll(&fd, 1, SHARED_LOOK_MS) > 0) {
            *ret_stop = true;
            return MUSTER_OK;
        }
    }
    if (shared_aside(program->shared) != NULL)
        broker_log(LOG_LEVEL_WARNING, "%s", shared_aside(program->shared));
    return status;
}

static enum muster_status main_start(struct program *program, bool *ret_stop,
                                     struct muster_error *err)
{
    struct store_options store_options = {.allow_network_fs = program->config.allow_network_fs,
                                          .lock_wait_ms = LOCK_WAIT_MS};
    struct bus_options bus_options = {.listen = program->config.listen, .db = program->config.db};
    enum muster_status status = main_take_files(err);

    if (status == MUSTER_OK)
        status = main_take_signals(&program->signal_fd, err);
    if (status == MUSTER_OK)
        status = bus_keys_open(program->config.db, &program->keys, err);
    bus_options.keys = program->keys;
    if (status == MUSTER_OK && program->config.sign)
        status = bus_keys_read_sign(program->keys, err);
    if (status == MUSTER_OK)
        store_options.sign = bus_keys_sign(program->keys);
    if (status == MUSTER_OK)
        status = bus_check_listen(bus_options.listen,
                                  bus_keys_count(program->keys) > 0 ? NULL : bus_options.db, err);
    if (status == MUSTER_OK)
        status = main_await_lease(program, ret_stop, err);
    if (*ret_stop)
        return status;
    store_options.shared = program->shared;
    if (status == MUSTER_OK)
        status = store_open(program->config.db, &store_options, &program->store, err);
    if (status == MUSTER_OK)
        status = bus_open(&bus_options, &program->bus, err);
    if (status == MUSTER_OK)
        status = main_make_core(program, err);
    if (status == MUSTER_OK)
        status = loop_start(program->loop, err);
    if (status == MUSTER_OK && program->config.port_file != NULL)
        status = main_write_port_file(program->config.port_file, program->bus, err);
    if (status == MUSTER_OK && program->config.metrics != NULL)
        status = metrics_open(program->config.metrics, &program->metrics, err);
    if (status == MUSTER_OK)
        loop_feeds(program->loop, program->metrics);
    return status;
}

/* The names and steps of jobs are no secret on this host; on other hosts they may be. */
static void main_say_metrics(const struct metrics *metrics)
{
    broker_log(LOG_LEVEL_INFO, "metrics at http://%s/metrics", metrics_address(metrics));
    if (!metrics_is_local(metrics))
        broker_log(LOG_LEVEL_WARNING,
                   "other hosts can read the metrics at %s, with the names and steps of all jobs; "
                   "--metrics 127.0.0.1:7790 is for this host alone",
                   metrics_address(metrics));
}

/* Prints the options in effect, if the configuration is good. */
static int main_config_told(const struct config *config, enum muster_status status,
                            const struct muster_error *err)
{
    char *text;

    if (status != MUSTER_OK) {
        fprintf(stderr, "musterd: %s\n", err->text);
        return EXIT_USAGE;
    }
    text = config_text(config);
    fputs(text == NULL ? "" : text, stdout);
    free(text);
    return EXIT_DONE;
}

static int main_check_relay(const struct config *config)
{
    struct brokers brokers;
    struct muster_error err;
    enum muster_status status = brokers_read(config->relay, &brokers, &err);

    if (status == MUSTER_OK)
        status = relay_check(config->listen, &brokers, &err);
    return main_config_told(config, status, &err);
}

/* Nothing is opened but the files of keys. */
static int main_check_config(const struct config *config)
{
    struct bus_keys *keys = NULL;
    struct muster_error err;
    enum muster_status status;

    if (config->relay != NULL)
        return main_check_relay(config);
    status = bus_keys_open(config->db, &keys, &err);
    if (status == MUSTER_OK)
        status =
            bus_check_listen(config->listen, bus_keys_count(keys) > 0 ? NULL : config->db, &err);
    bus_keys_close(&keys);
    return main_config_told(config, status, &err);
}

/* refused: nobody heard of this start, so it removes the files that it made. */
static void main_stop(struct program *program, bool refused)
{
    metrics_close(&program->metrics);
    loop_destroy(&program->loop);
    core_destroy(&program->core);
    bus_close(&program->bus);
    bus_keys_close(&program->keys);
    if (refused)
        store_discard(&program->store);
    store_close(&program->store);   /* gives up the lock ... */
    shared_close(&program->shared); /* ... and this the lease, so they are the last */
    if (program->signal_fd >= 0)
        close(program->signal_fd);
    config_free(&program->config);
}

/* One of several brokers becomes a standby again. It then acts as if it was just started, because
 * all that it knew may be out of date. */
static void main_begin_again(struct program *program)
{
    char id[64];

    if (program->shared == NULL)
        return;
    snprintf(id, sizeof id, "%s", shared_id(program->shared));
    shared_close(&program->shared); /* if the lease is still ours: the next one need not wait */
    if (id[0] != '\0')
        setenv(WAS_WITH, id, 1); /* no thread of ours is left that reads the environment */
    execv("/proc/self/exe", program->argv);
    broker_log(LOG_LEVEL_ERROR, "cannot begin again as a standby: %s", strerror(errno));
}

static int main_run(struct program *program)
{
    struct muster_error err;
    enum muster_status status;
    bool stopped = false;

    status = main_start(program, &stopped, &err);
    if (stopped) {
        main_stop(program, false);
        broker_log(LOG_LEVEL_INFO, "musterd has ended; it was a standby");
        return EXIT_DONE;
    }
    if (status != MUSTER_OK) {
        broker_log(LOG_LEVEL_ERROR, "%s: %s", muster_status_name(status), err.text);
        if (program->shared != NULL && (status == MUSTER_E_LOCKED || status == MUSTER_E_STORAGE)) {
            struct pollfd fd = {.fd = program->signal_fd, .events = POLLIN};

            store_discard(&program->store); /* a take-over that failed may be tried again */
            main_is_standby(program);
            if (poll(&fd, 1, SHARED_LOOK_MS) > 0) {
                main_stop(program, false);
                broker_log(LOG_LEVEL_INFO, "musterd has ended; it could not take over");
                return EXIT_DONE;
            }
            main_begin_again(program);
        }
        main_stop(program, true);
        return status == MUSTER_E_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    broker_log(LOG_LEVEL_INFO,
               "musterd " MUSTER_VERSION " is ready: commands at %s, events at %s, database %s, "
               "broker epoch %" PRIu64 "%s",
               bus_command_endpoint(program->bus), bus_events_endpoint(program->bus),
               program->config.db, core_epoch(program->core),
               bus_asks_for_keys(program->bus) ? ", clients need a key" : "");
    if (program->metrics != NULL)
        main_say_metrics(program->metrics);
    service_ready();
    if (program->shared != NULL)
        setenv(BEGAN_BEFORE, "1", 1);
    if (store_is_older(program->store))
        broker_log(LOG_LEVEL_WARNING,
                   "database %s was restored from an older copy; saves that were open in that copy "
                   "were given up",
                   program->config.db);
    status = loop_run(program->loop, &stopped, &err);
    if (status != MUSTER_OK) {
        broker_log(LOG_LEVEL_ERROR, "%s: %s; the next start goes on from what was written",
                   muster_status_name(status), err.text);
        if (!stopped)
            main_begin_again(program);
        shared_close(&program->shared); /* if the lease is still ours: the next one need not wait */
        _exit(stopped && program->config.shared != NULL ? EXIT_DONE : EXIT_FAILED);
    }
    service_stopping();
    main_stop(program, false);
    broker_log(LOG_LEVEL_INFO, "musterd has ended");
    return EXIT_DONE;
}

/* --- a migration ------------------------------------------------------------------------------ */

/* Within this time a lease that nobody renews ends, and a server that is far away answers. */
static enum muster_status main_migrate_take(struct program *program, const char *path,
                                            struct muster_error *err)
{
    const struct timespec pause = {.tv_nsec = SHARED_LOOK_MS * 1000000L};
    int64_t until_ms = clock_ms(CLOCK_BOOTTIME) + MIGRATE_WAIT_MS;
    enum muster_status status = main_open_shared(program, path, err);

    if (status != MUSTER_OK)
        return status;
    while ((status = shared_take(program->shared, err)) == MUSTER_E_LOCKED ||
           status == MUSTER_E_STORAGE) {
        if (clock_ms(CLOCK_BOOTTIME) >= until_ms || shared_is_older(program->shared))
            return status;
        nanosleep(&pause, NULL);
    }
    return status;
}

static void main_migrate_clean_up(const char *directory, const char *path)
{
    static const char *const suffixes[] = {"",      "-wal",  "-shm",      ".lock",
                                           ".mark", ".part", ".part-wal", ".part-shm"};
    char file[PATH_MAX + 16];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        unlink(file);
    }
    if (rmdir(directory) != 0 && errno == ENOTEMPTY)
        broker_log(LOG_LEVEL_INFO, "the records as they were before are in %s", directory);
}

/* It works with a copy in a directory of its own: the files of a broker may be another user's. */
static enum muster_status main_migrate_shared(struct program *program, struct muster_error *err)
{
    struct store_options options = {.allow_network_fs = true};
    const char *db = program->config.db;
    char directory[PATH_MAX], path[PATH_MAX + 4];
    enum muster_status status = dirs_make_parent(db, err);

    if (status != MUSTER_OK)
        return status;
    if (snprintf(directory, sizeof directory, "%s.migrate-XXXXXX", db) >= PATH_MAX - 16)
        return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                         db);
    if (mkdtemp(directory) == NULL)
        return error_set_code(err, MUSTER_E_IO, errno,
                              "cannot make directory %s: %s; name another place with --db",
                              directory, strerror(errno));
    snprintf(path, sizeof path, "%s/db", directory);
    status = main_migrate_take(program, path, err);
    options.shared = program->shared;
    if (status == MUSTER_OK && !shared_is_empty(program->shared))
        status = store_open(path, &options, &program->store, err);
    store_close(&program->store);
    main_migrate_clean_up(directory, path);
    return status;
}

static enum muster_status main_migrate_file(struct program *program, struct muster_error *err)
{
    const struct store_options options = {.allow_network_fs = program->config.allow_network_fs,
                                          .lock_wait_ms = LOCK_WAIT_MS};
    enum muster_status status = shared_refuse_copy(program->config.db, err);

    return status == MUSTER_OK ? store_open(program->config.db, &options, &program->store, err)
                               : status;
}

/* Does with the database what each start does, and nothing else. It is for a role that may make
 * tables, and for a trial before the brokers are started. A signal ends it at once, because it may
 * be killed at any time. */
static int main_migrate(struct program *program)
{
    struct muster_error err;
    enum muster_status status = program->config.shared != NULL ? main_migrate_shared(program, &err)
                                                               : main_migrate_file(program, &err);
    bool active =
        status == MUSTER_E_LOCKED && program->shared != NULL && !shared_is_older(program->shared);

    if (status == MUSTER_OK)
        broker_log(LOG_LEVEL_INFO,
                   "database %s is ready for musterd " MUSTER_VERSION
                   ": that is all that --migrate does",
                   program->shared != NULL ? shared_name(program->shared) : program->config.db);
    else
        broker_log(LOG_LEVEL_ERROR, "%s: %s%s", muster_status_name(status), err.text,
                   active ? "; end all brokers of this database before you migrate it" : "");
    main_stop(program, status != MUSTER_OK);
    return status == MUSTER_OK ? EXIT_DONE : status == MUSTER_E_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

/* --- a relay ---------------------------------------------------------------------------------- */

static enum muster_status main_start_relay(struct program *program, struct relay **ret_relay,
                                           struct muster_error *err)
{
    struct brokers brokers;
    enum muster_status status = main_take_files(err);

    if (status == MUSTER_OK)
        status = main_take_signals(&program->signal_fd, err);
    if (status == MUSTER_OK)
        status = brokers_read(program->config.relay, &brokers, err);
    if (status == MUSTER_OK) {
        const struct relay_options options = {.listen = program->config.listen,
                                              .brokers = &brokers,
                                              .key_file = program->config.key_file,
                                              .signal_fd = program->signal_fd};

        status = relay_open(&options, ret_relay, err);
    }
    if (status == MUSTER_OK && program->config.port_file != NULL)
        status = main_write_port_file(program->config.port_file, relay_bus(*ret_relay), err);
    return status;
}

static void main_say_relayed(const struct relay_counters *counters)
{
    broker_log(LOG_LEVEL_INFO,
               "the relay has ended: %" PRIu64 " messages up in %" PRIu64 " bundles, %" PRIu64
               " down in %" PRIu64 ", %" PRIu64 " events, %" PRIu64 " too late, %" PRIu64
               " for nobody",
               counters->up, counters->bundles_up, counters->down, counters->bundles_down,
               counters->events, counters->late, counters->unknown);
}

/* A relay has nothing to lose: a failure ends it, and its service starts it again. */
static int main_relay(struct program *program)
{
    struct relay *relay = NULL;
    struct muster_error err;
    enum muster_status status = main_start_relay(program, &relay, &err);

    if (status == MUSTER_OK) {
        broker_log(LOG_LEVEL_INFO,
                   "musterd " MUSTER_VERSION " is ready as a relay: ranks use MUSTER_BROKER=%s,%s, "
                   "the broker is at %s",
                   bus_command_endpoint(relay_bus(relay)), program->config.relay,
                   program->config.relay);
        service_ready();
        status = relay_run(relay, &err);
        service_stopping();
        main_say_relayed(relay_counters(relay));
    }
    if (status != MUSTER_OK)
        broker_log(LOG_LEVEL_ERROR, "%s: %s", muster_status_name(status), err.text);
    relay_close(&relay);
    main_stop(program, false);
    return status == MUSTER_OK ? EXIT_DONE : status == MUSTER_E_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    struct program program = {.signal_fd = -1, .argv = argv};
    struct muster_error err;
    enum muster_status status;

    if (failpoint_list())
        return EXIT_DONE;
    status = config_parse(argc, argv, &program.config, &err);
    if (status != MUSTER_OK) {
        fprintf(stderr, "musterd: %s\n", err.text);
        config_free(&program.config);
        return status == MUSTER_E_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    if (program.config.show_help) {
        fputs(config_help(), stdout);
        return EXIT_DONE;
    }
    if (program.config.show_version) {
        puts("musterd " MUSTER_VERSION);
        return EXIT_DONE;
    }
    if (program.config.check_config) {
        int code = main_check_config(&program.config);

        config_free(&program.config);
        return code;
    }
    json_memory_prepare();
    umask(077); /* state, sockets and port file are this user's alone */
    broker_log_format(program.config.log_format);
    broker_log_least(program.config.log_level);
    broker_log_never_waits();
    if (program.config.relay != NULL)
        return main_relay(&program);
    store_alone_in_process();
    if (program.config.migrate)
        return main_migrate(&program);
    return main_run(&program);
}
