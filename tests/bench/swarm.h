/* swarm - N simulated nodes of one process against a real musterd over TCP on this host, for
 * benchmarks of how fast something reaches all of them; and the floor beside it: messages of the
 * same number and size through a bare ROUTER and PUB. One thread serves all nodes, so its work is
 * part of the time. More than SWARM_PROCESS_NODES are several swarms, each in its process, which
 * take the same path and meet at its turns. */
#ifndef TESTS_BENCH_SWARM_H
#define TESTS_BENCH_SWARM_H

#include "schema/keys/keys.h"
#include "schema/wire/wire.h"

#include <limits.h>
#include <sys/types.h>
#include <zmq.h>

#define HEAD_BYTES 60
#define SWARM_ENDPOINT_BYTES 128
#define SWARM_JOB_BYTES 32
#define SWARM_RELAY_RANKS 8 /* of a host */
#define SWARM_RELAY_MANY 64 /* instead, of more than SWARM_DIRECT_NODES: it is all one host */
#define SWARM_PROCESS_NODES                                                                      \
    2500                        /* a node has four descriptors; more nodes are several processes \
                                 */
#define SWARM_DIRECT_NODES 4500 /* more than these only through relays: a broker has two each */

struct node {
    void *dealer;
    void *sub;
    void *monitor; /* of its DEALER; NULL: see swarm_watch */
    char job[SWARM_JOB_BYTES];
    uint64_t rank;
    uint64_t incarnation;
    uint64_t generation;
    uint64_t request; /* last number given */
    uint64_t applied_seq;
    bool heard_topic; /* its SUB works */
    bool welcomed;
    bool joined; /* SNAPSHOT taken */
    bool restored;
    int64_t ack_ms; /* applied events, and said nothing since: when it does; 0 = no need */
};

struct bench;

/* What the processes of one launch share; they are there before it is. */
struct swarm_mates {
    size_t count;
    _Atomic size_t arrived; /* at any turn, ever */
    double decided_ms[(WORLD_SIZE_MAX + SWARM_PROCESS_NODES - 1) / SWARM_PROCESS_NODES];
};

struct hosts;

struct swarm {
    void *context;
    struct hosts *hosts; /* NULL: each node has connections of its own */
    struct node *nodes;
    size_t count;
    size_t first, total;       /* the rank of its first node; nodes of the launch */
    size_t world;              /* nodes of each job: all, unless it was split */
    struct swarm_mates *mates; /* NULL: it is alone */
    size_t mine, turns;        /* which of them it is, 0 leads; turns at which they met */
    zmq_pollitem_t *items;     /* each node's DEALER, then its SUB; then all monitors */
    size_t items_count;
    void (*connected)(struct swarm *swarm, struct node *node); /* again, see swarm_watch */
    void (*take)(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size);
    const struct bench *bench;
    struct arena arena;
    uint64_t broker_epoch;
    uint64_t round;
    int64_t heartbeat_ms;
    double decided_ms;          /* when the last of them had it */
    double cpu_from_ms, cpu_ms; /* what the server computed for it */
    double server_mib;          /* its memory at that end */
    double opened_ms, join_ms;  /* from the first connection until all had joined; 0 = not yet */
    /* how many nodes are that far */
    size_t heard_topic;
    size_t welcomed;
    size_t started;
    size_t decided;
    size_t ended;
    size_t left;
};

/* What one benchmark is. */
struct bench {
    const char *name;
    const char *musterd;   /* unless MUSTERD says another */
    const char *directory; /* of the database on disk, unless told */
    /* an event was applied by a node; resume and started are served already */
    void (*apply)(struct swarm *swarm, struct node *node, const struct wire_event *event);
    /* one launch of all nodes; returns the milliseconds that count */
    double (*once)(struct swarm *swarm, uint64_t launch);
    /* the floor: the server's answers to a frame of kind `frame[0]` of count nodes; and a node's */
    void (*floor_serve)(void *pub, char kind, size_t count);
    void (*floor_take)(struct swarm *swarm, struct node *node, char kind);
    bool floor_writes_twice; /* it calls floor_commit_told */
    /* the same of the floor, once all nodes are connected; NULL: an agreement's, see floor_serve */
    double (*floor_once)(struct swarm *swarm, uint64_t launch);
    bool beside_redis; /* it is what redis.h measures, too */
    bool idle;         /* what counts is processor time and memory, also behind many relays */
};

/* The main program: usage NAME [ROUNDS [DIRECTORY [NODES ...]]]; one JSON object on stdout. Of each
 * figure it prints the median and the worst milliseconds of the rounds, and the median of the
 * server's processor time:
 *
 *   floor    bare sockets, see above: no decoding, no decision, no database
 *   commit   the same with one synced SQLite transaction in DIRECTORY before the last publication
 *   commits  the same with one more commit before the freeze, as R2.1 of the protocol requires
 *   memory   musterd with its database on /dev/shm, where fsync costs nothing
 *   keys     the same with keys: CURVE, and each message's authority; _join is from the first
 *            connection until all nodes have joined, so it has two handshakes a node
 *   disk     musterd with its database in DIRECTORY (default: the build tree)
 *   relayed  the same through relays of SWARM_RELAY_RANKS nodes each, all on this host; alone, and
 * of SWARM_RELAY_MANY, for more than SWARM_DIRECT_NODES
 *   hosts    the same behind relays that the swarm itself stands for, see swarm_hosts.c; if idle
 *   redis    the same agreement by Redis, see redis.h, if redis-server is installed
 *
 * With BENCH_SHARED=postgresql://... in the environment (bench_shared.sh) it prints disk and, of
 * musterd --shared there, shared, each twice, and the ratio of their times alone. */
int bench_main(const struct bench *bench, int argc, char **argv);

__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);
double bench_now_ms(void);
double bench_server_mib(void); /* memory that bench_server has now */

/* Parts of a launch. */
struct wire_msg swarm_message(enum wire_type type);
void swarm_say(struct swarm *swarm, struct node *node, struct wire_msg *message);
void swarm_join(struct swarm *swarm, uint64_t launch); /* HELLO of all, until all rest */
void swarm_await(struct swarm *swarm, const size_t *counter, const char *what); /* of all nodes */
/* Around what counts: returns the time, and then how long it took. */
double swarm_begin(struct swarm *swarm);
double swarm_end(struct swarm *swarm, double began_ms);
void swarm_leave(struct swarm *swarm, enum wire_leave_why why);
/* Into jobs of so many nodes each, one behind the other, before they join. */
void swarm_split(struct swarm *swarm, size_t world);
/* From now on `again` is called for each node whose DEALER has a connection again. */
void swarm_watch(struct swarm *swarm, void (*again)(struct swarm *swarm, struct node *node));
void swarm_welcomed(struct swarm *swarm, struct node *node); /* its HELLO was answered */
void swarm_forget(struct swarm *swarm); /* nobody was welcomed, nor has heard its topic */
/* HELLO of a node that takes part in a launch; of others nothing. */
void swarm_hello_again(struct swarm *swarm, struct node *node);
void swarm_meet(struct swarm *swarm); /* waits for its mates, while its nodes live */

double bench_median(double *values, size_t count); /* sorts them */
/* In `parent`, with a new name; and its end, with all that is in it. */
void bench_make_directory(const char *parent, char ret_dir[PATH_MAX]);
void bench_remove_directory(const char *dir);
void bench_raise_files(void); /* as many descriptors as this process may have */

/* Parts of the floor. */
void floor_publish(void *pub, char kind, size_t size);
void floor_commit(void); /* one synced transaction, in the floor that has a database */
/* One more commit, if this floor writes each event before it tells it. */
void floor_commit_told(void);
void floor_say(struct node *node, char kind);

/* Inside swarm*.c. */
extern pid_t bench_server; /* musterd or the floor's echo; 0 = none */
void bench_stop_server(int signo);
struct door { /* where nodes connect to */
    char commands[SWARM_ENDPOINT_BYTES], events[SWARM_ENDPOINT_BYTES];
};
/* Ranks first to first + count - 1 of a launch of total. each: so many ranks go to one door, one
 * after the other. key: NULL, or what all nodes show. */
void swarm_open(struct swarm *swarm, size_t first, size_t count, const struct door *doors,
                size_t each, const struct key_file *key);
void swarm_open_behind_hosts(struct swarm *swarm, size_t count, const struct door *door,
                             size_t each);
void swarm_close(struct swarm *swarm);
void *swarm_connect(struct swarm *swarm, int type, const char *endpoint,
                    const struct key_file *key);
void swarm_take(struct swarm *swarm, struct node *node, bool event, const uint8_t *frame,
                size_t size);
void swarm_take_frame(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size);
bool swarm_pump(struct swarm *swarm, long timeout_ms);

/* Hosts of so many nodes each, of a swarm that has none yet. The others: nothing if it has none. */
void swarm_hosts_open(struct swarm *swarm, const struct door *door, size_t each);
void swarm_hosts_close(struct swarm *swarm);
void swarm_hosts_hello(struct swarm *swarm);
void swarm_hosts_flush(struct swarm *swarm);
void swarm_hosts_put(struct swarm *swarm, const struct node *node, const void *bytes, size_t size);
void swarm_hosts_take(struct swarm *swarm, size_t item); /* what came there */

/* Relays for so many nodes below the broker at `commands`; their files are in `dir`. */
void relays_start(const char *musterd, const char *dir, const char *commands, size_t count,
                  size_t each, struct door *ret_doors);
void relays_stop(int signo);
/* Waits for the file that musterd writes its endpoints to, while `process` lives. */
void await_port_file(int watch, pid_t process, const char *path, struct door *ret_door);
void swarm_quiet(struct swarm *swarm);

#endif
