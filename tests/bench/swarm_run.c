/* swarm_run - the floor, musterd's start, the figures and their printing; see swarm.h. */
#include "tests/bench/redis.h"
#include "tests/bench/swarm.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libpq-fe.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_DEFAULT 21
#define ROUNDS_IDLE 3 /* each takes seconds */
#define ROUNDS_LIMIT 1000
#define PATIENCE_MS 30000
#define COUNTS_MAX 16
#define TMPFS 0x01021994
#define MEMORY "/dev/shm"
#define SHARED_ADDRESS "BENCH_SHARED"

static sqlite3 *floor_db;     /* of the floor's process, if it has one */
static bool floor_is_written; /* it writes what it tells, as R2.1 has it */

/* --- the floor -------------------------------------------------------------------------------- */

void floor_publish(void *pub, char kind, size_t size)
{
    static uint8_t bytes[WIRE_FRAME_MAX];

    bytes[0] = (uint8_t)kind;
    zmq_send(pub, "bench", sizeof "bench", ZMQ_SNDMORE);
    zmq_send(pub, bytes, size, 0);
}

static void echo_serve(const struct bench *bench, void *router, void *pub, size_t count)
{
    uint8_t from[256], frame[512], answer[HEAD_BYTES] = {'a'};

    for (;;) {
        int from_size = zmq_recv(router, from, sizeof from, 0);

        if (from_size < 0 || zmq_recv(router, frame, sizeof frame, 0) < 0)
            _exit(EXIT_FAILURE);
        if (frame[0] == 'p') { /* for await_topic's like */
            floor_publish(pub, 'p', 1);
            continue;
        }
        if (frame[0] != 'r') { /* a report has no answer */
            zmq_send(router, from, (size_t)from_size, ZMQ_SNDMORE);
            zmq_send(router, answer, sizeof answer, 0);
        }
        bench->floor_serve(pub, (char)frame[0], count);
    }
}

/* As musterd's: WAL, and each commit is synced. */
static void floor_open(const char *path)
{
    if (sqlite3_open(path, &floor_db) != SQLITE_OK ||
        sqlite3_exec(floor_db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                     "CREATE TABLE round (round INTEGER PRIMARY KEY, step INTEGER)",
                     NULL, NULL, NULL) != SQLITE_OK)
        _exit(EXIT_FAILURE);
}

void floor_commit(void)
{
    if (floor_db != NULL && sqlite3_exec(floor_db, "INSERT INTO round (step) VALUES (1)", NULL,
                                         NULL, NULL) != SQLITE_OK)
        _exit(EXIT_FAILURE);
}

void floor_commit_told(void)
{
    if (floor_is_written)
        floor_commit();
}

/* db: NULL, or where it keeps one. */
static void echo_start(const struct bench *bench, size_t count, const char *db,
                       struct door *ret_door)
{
    int ends[2];

    if (pipe(ends) != 0 || (bench_server = fork()) < 0)
        bench_die("cannot start the floor: %s", strerror(errno));
    if (bench_server == 0) {
        char both[2][SWARM_ENDPOINT_BYTES] = {{0}};
        size_t size = SWARM_ENDPOINT_BYTES;
        void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER),
             *pub = zmq_socket(context, ZMQ_PUB);

        if (db != NULL)
            floor_open(db);
        if (zmq_bind(router, "tcp://127.0.0.1:*") != 0 || zmq_bind(pub, "tcp://127.0.0.1:*") != 0)
            _exit(EXIT_FAILURE);
        zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, both[0], &size);
        size = SWARM_ENDPOINT_BYTES;
        zmq_getsockopt(pub, ZMQ_LAST_ENDPOINT, both[1], &size);
        if (write(ends[1], both, sizeof both) != (ssize_t)sizeof both)
            _exit(EXIT_FAILURE);
        echo_serve(bench, router, pub, count);
    }
    close(ends[1]);
    if (read(ends[0], ret_door, sizeof *ret_door) != (ssize_t)sizeof *ret_door)
        bench_die("the floor did not start");
    close(ends[0]);
}

static void take_floor(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size)
{
    (void)size;
    swarm->bench->floor_take(swarm, node, (char)frame[0]);
}

static double floor_once(struct swarm *swarm, uint64_t launch)
{
    double until = bench_now_ms() + PATIENCE_MS, began_ms;

    while (swarm->heard_topic < swarm->count && bench_now_ms() < until) {
        floor_say(&swarm->nodes[0], 'p');
        swarm_pump(swarm, 10);
    }
    swarm_quiet(swarm);
    if (swarm->bench->floor_once != NULL)
        return swarm->bench->floor_once(swarm, launch);
    swarm->decided = 0;
    began_ms = swarm_begin(swarm);
    floor_say(&swarm->nodes[launch % swarm->count], 'n');
    swarm_await(swarm, &swarm->decided, "for the floor's answer");
    return swarm_end(swarm, began_ms);
}

/* --- runs ------------------------------------------------------------------------------------- */

struct figure {
    double median;
    double worst;
    double cpu; /* of the server: a median */
    double join;
    double mib, empty_mib; /* its memory: at the end, and before anybody came */
};

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

static struct figure figure_of(double *values, size_t count)
{
    double median = bench_median(values, count);

    return (struct figure){.median = median, .worst = values[count - 1]};
}

static struct figure run_rounds(struct swarm *swarm, size_t rounds,
                                double (*once)(struct swarm *, uint64_t))
{
    static double times[ROUNDS_LIMIT], cpu[ROUNDS_LIMIT];
    struct figure figure;

    once(swarm, 1); /* connections, caches and the database's file are warm then */
    for (size_t i = 0; i < rounds; i++) {
        times[i] = once(swarm, i + 2);
        cpu[i] = swarm->cpu_ms;
    }
    figure = figure_of(times, rounds);
    figure.cpu = figure_of(cpu, rounds).median;
    figure.join = swarm->join_ms;
    figure.mib = swarm->server_mib;
    return figure;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void bench_make_directory(const char *parent, char dir[PATH_MAX])
{
    snprintf(dir, PATH_MAX, "%s/muster-bench-XXXXXX", parent);
    if (mkdtemp(dir) == NULL)
        bench_die("cannot make a directory in %s: %s", parent, strerror(errno));
}

void bench_remove_directory(const char *dir)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* parent: NULL, or the directory of its database. */
static struct figure measure_floor(const struct bench *bench, const char *parent, size_t count,
                                   size_t rounds)
{
    char dir[PATH_MAX], db[PATH_MAX + 16] = "";
    struct door door;
    struct swarm swarm;
    struct figure figure;
    double empty_mib;

    if (parent != NULL) {
        bench_make_directory(parent, dir);
        snprintf(db, sizeof db, "%s/floor.db", dir);
    }
    echo_start(bench, count, parent != NULL ? db : NULL, &door);
    empty_mib = bench_server_mib();
    swarm_open(&swarm, 0, count, &door, count, NULL);
    swarm.take = take_floor;
    swarm.bench = bench;
    figure = run_rounds(&swarm, rounds, floor_once);
    figure.empty_mib = empty_mib;
    swarm_close(&swarm);
    bench_stop_server(SIGKILL);
    if (parent != NULL)
        bench_remove_directory(dir);
    return figure;
}

static void write_secret(const char *db, const char *ending, const char *text)
{
    char path[PATH_MAX + 32];
    FILE *file;

    snprintf(path, sizeof path, "%s%s", db, ending);
    umask(077);
    file = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        bench_die("cannot write %s: %s", path, strerror(errno));
}

/* What `muster key add` writes. */
static void make_key(const char *db, struct key_file *ret_key)
{
    struct key_grant grant = {.name = "bench", .role = KEY_NODE, .jobs = "bench"};
    char secret[KEY_TEXT_BYTES + 1], line[KEY_LINE_BYTES_MAX];

    *ret_key = (struct key_file){.role = KEY_NODE};
    if (zmq_curve_keypair(ret_key->broker_key, secret) != 0 ||
        zmq_curve_keypair(ret_key->public_key, ret_key->secret_key) != 0)
        bench_die("this libzmq has no CURVE");
    memcpy(grant.public_key, ret_key->public_key, sizeof grant.public_key);
    key_grant_write(&grant, line);
    write_secret(db, ".key", secret);
    write_secret(db, ".keys", line);
}

enum measured { MEASURED_PLAIN, MEASURED_KEYS, MEASURED_RELAYED, MEASURED_SHARED, MEASURED_HOSTS };

/* As nobody has written into it. */
static void empty_shared(const char *address)
{
    PGconn *conn = PQconnectdb(address);
    PGresult *result =
        PQexec(conn, "DROP TABLE IF EXISTS muster_lease, muster_batch, muster_snapshot");

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        bench_die("the shared database: %s", PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
}

struct place {
    const struct door *doors;
    size_t each; /* so many ranks a door */
    const struct key_file *key;
};

/* One process of a launch; `mates` NULL: the only one. */
static struct figure run_swarm(const struct bench *bench, size_t count, size_t rounds,
                               const struct place *place, struct swarm_mates *mates, size_t mine)
{
    size_t processes = mates == NULL ? 1 : mates->count;
    size_t first = count * mine / processes, end = count * (mine + 1) / processes;
    struct swarm swarm;
    struct figure figure;

    swarm_open(&swarm, first, end - first, place->doors, place->each, place->key);
    swarm.total = swarm.world = count;
    swarm.mates = mates;
    swarm.mine = mine;
    swarm.take = swarm_take_frame;
    swarm.bench = bench;
    figure = run_rounds(&swarm, rounds, bench->once);
    swarm_close(&swarm);
    return figure;
}

/* One process has all nodes: a host has two connections for SWARM_RELAY_RANKS of them. */
static struct figure run_behind_hosts(const struct bench *bench, size_t count, size_t rounds,
                                      const struct door *door)
{
    struct swarm swarm;
    struct figure figure;

    swarm_open_behind_hosts(&swarm, count, door, SWARM_RELAY_RANKS);
    swarm.take = swarm_take_frame;
    swarm.bench = bench;
    figure = run_rounds(&swarm, rounds, bench->once);
    swarm_close(&swarm);
    return figure;
}

static struct figure run_swarms(const struct bench *bench, size_t count, size_t rounds,
                                const struct place *place)
{
    size_t processes = (count + SWARM_PROCESS_NODES - 1) / SWARM_PROCESS_NODES;
    struct swarm_mates *mates;
    struct figure figure;
    pid_t pids[sizeof mates->decided_ms / sizeof *mates->decided_ms];
    int status;

    if (processes == 1 || count <= SWARM_DIRECT_NODES)
        return run_swarm(bench, count, rounds, place, NULL, 0);
    mates = mmap(NULL, sizeof *mates, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mates == MAP_FAILED)
        bench_die("no memory");
    mates->count = processes;
    for (size_t i = 1; i < processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            run_swarm(bench, count, rounds, place, mates, i);
            _exit(EXIT_SUCCESS);
        }
    }
    figure = run_swarm(bench, count, rounds, place, mates, 0);
    for (size_t i = 1; i < processes; i++)
        if (waitpid(pids[i], &status, 0) < 0 || status != 0)
            bench_die("a process of the swarm failed; what it said is above");
    munmap(mates, sizeof *mates);
    return figure;
}

static struct figure measure_broker(const struct bench *bench, const char *parent, size_t count,
                                    size_t rounds, enum measured what)
{
    const char *from = getenv("MUSTERD"), *musterd = from != NULL ? from : bench->musterd;
    char dir[PATH_MAX], db[PATH_MAX + 16], port[PATH_MAX + 16];
    static struct door doors[WORLD_SIZE_MAX];
    struct key_file key;
    struct figure figure;
    const size_t each = count > SWARM_DIRECT_NODES ? SWARM_RELAY_MANY : SWARM_RELAY_RANKS;
    int watch = inotify_init1(IN_CLOEXEC);
    double empty_mib;

    bench_make_directory(parent, dir);
    snprintf(db, sizeof db, "%s/muster.db", dir);
    snprintf(port, sizeof port, "%s/port", dir);
    if (what == MEASURED_KEYS)
        make_key(db, &key);
    if (what == MEASURED_SHARED)
        empty_shared(getenv(SHARED_ADDRESS));
    if (inotify_add_watch(watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
        bench_die("cannot watch %s: %s", dir, strerror(errno));
    bench_server = fork();
    if (bench_server == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(null, STDERR_FILENO); /* its log: one line a join */
        execl(musterd, musterd, "--listen", "tcp://127.0.0.1:*", "--db", db, "--port-file", port,
              what == MEASURED_SHARED ? "--shared" : NULL, getenv(SHARED_ADDRESS), (char *)NULL);
        _exit(127);
    }
    await_port_file(watch, bench_server, port, &doors[0]);
    close(watch);
    if (what == MEASURED_RELAYED)
        relays_start(musterd, dir, doors[0].commands, count, each, doors);
    empty_mib = bench_server_mib();
    if (what == MEASURED_HOSTS)
        figure = run_behind_hosts(bench, count, rounds, &doors[0]);
    else
        figure = run_swarms(bench, count, rounds,
                            &(struct place){.doors = doors,
                                            .each = what == MEASURED_RELAYED ? each : count,
                                            .key = what == MEASURED_KEYS ? &key : NULL});
    figure.empty_mib = empty_mib;
    bench_stop_server(SIGTERM);
    bench_remove_directory(dir);
    return figure;
}

/* What one synced write of a page costs there: SQLite's commits are made of these. */
static double sync_ms(const char *parent, size_t rounds)
{
    static double times[ROUNDS_LIMIT];
    char path[PATH_MAX], page[4096] = {0};
    int fd;

    snprintf(path, sizeof path, "%s/muster-bench-XXXXXX", parent);
    fd = mkstemp(path);
    if (fd < 0)
        bench_die("cannot make a file in %s: %s", parent, strerror(errno));
    for (size_t i = 0; i < rounds; i++) {
        double began_ms = bench_now_ms();

        if (write(fd, page, sizeof page) != (ssize_t)sizeof page || fdatasync(fd) != 0)
            bench_die("cannot write to %s: %s", path, strerror(errno));
        times[i] = bench_now_ms() - began_ms;
    }
    close(fd);
    unlink(path);
    return figure_of(times, rounds).median;
}

static bool is_memory(const char *path)
{
    struct statfs fs;

    return statfs(path, &fs) == 0 && fs.f_type == TMPFS;
}

static void print_figure(const char *name, struct figure figure)
{
    printf(", \"%s_ms\": %.3f, \"%s_worst_ms\": %.3f, \"%s_cpu_ms\": %.3f", name, figure.median,
           name, figure.worst, name, figure.cpu);
}

static void print_broker(const char *name, struct figure figure)
{
    print_figure(name, figure);
    printf(", \"%s_join_ms\": %.0f", name, figure.join);
}

static size_t bench_read_counts(int argc, char **argv, size_t *ret_counts)
{
    size_t count = 0;

    for (; count < (size_t)argc && count < COUNTS_MAX; count++) {
        ret_counts[count] = strtoul(argv[count], NULL, 10);
        if (ret_counts[count] == 0 || ret_counts[count] > WORLD_SIZE_MAX)
            bench_die("%s is no number of nodes from 1 to %d", argv[count], WORLD_SIZE_MAX);
    }
    return count;
}

static struct figure measure_redis(const char *parent, size_t count, size_t rounds)
{
    static double times[ROUNDS_LIMIT], cpu[ROUNDS_LIMIT];
    char dir[PATH_MAX];
    struct figure figure;

    bench_make_directory(parent, dir);
    redis_measure(dir, count, rounds, times, cpu);
    bench_remove_directory(dir);
    figure = figure_of(times, rounds);
    figure.cpu = figure_of(cpu, rounds).median;
    return figure;
}

static void print_idle(const char *name, struct figure figure)
{
    printf(", \"%s_cpu_ms\": %.3f, \"%s_mib\": %.1f, \"%s_empty_mib\": %.1f", name, figure.cpu,
           name, figure.mib, name, figure.empty_mib);
    fflush(stdout);
}

static void bench_print_idle(const struct bench *bench, const char *disk, size_t count,
                             size_t rounds)
{
    if (count <= SWARM_DIRECT_NODES) {
        print_idle("floor", measure_floor(bench, NULL, count, rounds));
        print_idle("direct", measure_broker(bench, disk, count, rounds, MEASURED_PLAIN));
    }
    print_idle("relayed", measure_broker(bench, disk, count, rounds, MEASURED_RELAYED));
    print_idle("hosts", measure_broker(bench, disk, count, rounds, MEASURED_HOSTS));
}

static void bench_print_all(const struct bench *bench, const char *disk, size_t count,
                            size_t rounds)
{
    if (count > SWARM_DIRECT_NODES) {
        print_broker("relayed", measure_broker(bench, disk, count, rounds, MEASURED_RELAYED));
        return;
    }
    print_figure("floor", measure_floor(bench, NULL, count, rounds));
    fflush(stdout);
    print_figure("commit", measure_floor(bench, disk, count, rounds));
    fflush(stdout);
    if (bench->floor_writes_twice) {
        floor_is_written = true;
        print_figure("commits", measure_floor(bench, disk, count, rounds));
        floor_is_written = false;
        fflush(stdout);
    }
    print_broker("memory", measure_broker(bench, MEMORY, count, rounds, MEASURED_PLAIN));
    fflush(stdout);
    print_broker("keys", measure_broker(bench, MEMORY, count, rounds, MEASURED_KEYS));
    fflush(stdout);
    print_broker("disk", measure_broker(bench, disk, count, rounds, MEASURED_PLAIN));
    fflush(stdout);
    print_broker("relayed", measure_broker(bench, disk, count, rounds, MEASURED_RELAYED));
    fflush(stdout);
    if (bench->beside_redis && count <= REDIS_NODES_MAX && redis_is_here())
        print_figure("redis", measure_redis(disk, count, rounds));
}

/* Twice in turn, so that a load that comes or goes falls on both. */
static void bench_print_shared(const struct bench *bench, const char *disk, size_t count,
                               size_t rounds)
{
    struct figure alone[2], shared[2];

    for (size_t i = 0; i < 2; i++) {
        alone[i] = measure_broker(bench, disk, count, rounds, MEASURED_PLAIN);
        shared[i] = measure_broker(bench, disk, count, rounds, MEASURED_SHARED);
    }
    print_broker("disk", alone[0]);
    print_broker("shared", shared[0]);
    print_broker("disk_again", alone[1]);
    print_broker("shared_again", shared[1]);
    printf(", \"ratio\": %.2f",
           (shared[0].median + shared[1].median) / (alone[0].median + alone[1].median));
}

void bench_raise_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* 256 nodes: two connections and two eventfds each */
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

int bench_main(const struct bench *bench, int argc, char **argv)
{
    size_t counts[COUNTS_MAX] = {4, 64, 256};
    size_t counts_count = argc > 3 ? bench_read_counts(argc - 3, argv + 3, counts) : 3;
    const char *memory = MEMORY, *disk = argc > 2 ? argv[2] : bench->directory;
    size_t rounds = argc > 1      ? (size_t)strtoul(argv[1], NULL, 10)
                    : bench->idle ? ROUNDS_IDLE
                                  : ROUNDS_DEFAULT;

    if (rounds == 0 || rounds > ROUNDS_LIMIT)
        bench_die("usage: bench_%s [ROUNDS [DIRECTORY [NODES ...]]], at most %d rounds",
                  bench->name, ROUNDS_LIMIT);
    if (!is_memory(memory))
        bench_die("%s is no tmpfs, so there is no place without an fsync", memory);
    bench_raise_files();
    printf("{\"bench\": \"%s\", \"rounds\": %zu, \"memory_sync_ms\": %.3f, "
           "\"disk_sync_ms\": %.3f, \"disk_is_memory\": %s, \"results\": [",
           bench->name, rounds, sync_ms(memory, rounds), sync_ms(disk, rounds),
           is_memory(disk) ? "true" : "false");
    for (size_t i = 0; i < counts_count; i++) {
        printf("%s{\"nodes\": %zu", i > 0 ? ", " : "", counts[i]);
        fflush(stdout); /* a child must not have it too */
        if (getenv(SHARED_ADDRESS) != NULL)
            bench_print_shared(bench, disk, counts[i], rounds);
        else if (bench->idle)
            bench_print_idle(bench, disk, counts[i], rounds);
        else
            bench_print_all(bench, disk, counts[i], rounds);
        printf("}");
        fflush(stdout);
    }
    printf("]}\n");
    return EXIT_SUCCESS;
}
