/* swarm - N simulated nodes of one process against a real musterd over TCP on this host, for
 * benchmarks of how fast something reaches all of them; and the floor beside it: messages of the
 * same number and size through a bare ROUTER and PUB. One thread serves all nodes, so its work is
 * part of the time. More than SWARM_PROCESS_NODES are several swarms, each in its process, which
 * take the same path and meet at its turns. */
#ifndef TESTS_BENCH_SWARM_H
#define TESTS_BENCH_SWARM_H

#include "schema/keys/keys.h"
#include "schema/wire/wire.h"

#include <sys/types.h>
#include <zmq.h>

#define HEAD_BYTES 60
#define SWARM_ENDPOINT_BYTES 128
#define SWARM_RELAY_RANKS 8 /* of a host */
#define SWARM_RELAY_MANY 64 /* instead, of more than SWARM_DIRECT_NODES: it is all one host */
#define SWARM_PROCESS_NODES                                                                      \
    2500                        /* a node has four descriptors; more nodes are several processes \
                                 */
#define SWARM_DIRECT_NODES 4500 /* more than these only through relays: a broker has two each */

struct node {
    void *dealer;
    void *sub;
    uint64_t rank;
    uint64_t incarnation;
    uint64_t generation;
    uint64_t request; /* last number given */
    uint64_t applied_seq;
    bool heard_topic; /* its SUB works */
    bool joined;      /* SNAPSHOT taken */
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

struct swarm {
    void *context;
    struct node *nodes;
    size_t count;
    size_t first, total;       /* the rank of its first node; nodes of the launch */
    struct swarm_mates *mates; /* NULL: it is alone */
    size_t mine, turns;        /* which of them it is, 0 leads; turns at which they met */
    zmq_pollitem_t *items;     /* each node's DEALER, then its SUB */
    void (*take)(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size);
    const struct bench *bench;
    struct arena arena;
    uint64_t broker_epoch;
    uint64_t round;
    int64_t heartbeat_ms;
    double decided_ms;          /* when the last of them had it */
    double cpu_from_ms, cpu_ms; /* what the server computed for it */
    double opened_ms, join_ms;  /* from the first connection until all had joined; 0 = not yet */
    /* how many nodes are that far */
    size_t heard_topic;
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
    bool beside_redis; /* it is what redis.h measures, too */
};

/* The main program: usage NAME [ROUNDS [DIRECTORY [NODES ...]]]; one JSON object on stdout. Of each
 * figure it prints the median and the worst milliseconds of the rounds, and the median of the
 * server's processor time:
 *
 *   floor    bare sockets, see above: no decoding, no decision, no database
 *   commit   the same with one synced SQLite transaction in DIRECTORY before the last publication
 *   memory   musterd with its database on /dev/shm, where fsync costs nothing
 *   keys     the same with keys: CURVE, and each message's authority; _join is from the first
 *            connection until all nodes have joined, so it has two handshakes a node
 *   disk     musterd with its database in DIRECTORY (default: the build tree)
 *   relayed  the same through relays of SWARM_RELAY_RANKS nodes each, all on this host; alone, and
 * of SWARM_RELAY_MANY, for more than SWARM_DIRECT_NODES
 *   redis    the same agreement by Redis, see redis.h, if redis-server is installed
 *
 * With BENCH_SHARED=postgresql://... in the environment (bench_shared.sh) it prints disk and, of
 * musterd --shared there, shared, each twice, and the ratio of their times alone. */
int bench_main(const struct bench *bench, int argc, char **argv);

__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);
double bench_now_ms(void);

/* Parts of a launch. */
struct wire_msg swarm_message(enum wire_type type);
void swarm_say(struct swarm *swarm, struct node *node, struct wire_msg *message);
void swarm_join(struct swarm *swarm, uint64_t launch); /* HELLO of all, until all rest */
void swarm_await(struct swarm *swarm, const size_t *counter, const char *what); /* of all nodes */
/* Around what counts: returns the time, and then how long it took. */
double swarm_begin(struct swarm *swarm);
double swarm_end(struct swarm *swarm, double began_ms);
void swarm_leave(struct swarm *swarm, enum wire_leave_why why);
void swarm_meet(struct swarm *swarm); /* waits for its mates, while its nodes live */

/* Parts of the floor. */
void floor_publish(void *pub, char kind, size_t size);
void floor_commit(void); /* one synced transaction, in the floor that has a database */
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
void swarm_close(struct swarm *swarm);
void swarm_take_frame(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size);
bool swarm_pump(struct swarm *swarm, long timeout_ms);

/* Relays for so many nodes below the broker at `commands`; their files are in `dir`. */
void relays_start(const char *musterd, const char *dir, const char *commands, size_t count,
                  size_t each, struct door *ret_doors);
void relays_stop(int signo);
/* Waits for the file that musterd writes its endpoints to, while `process` lives. */
void await_port_file(int watch, pid_t process, const char *path, struct door *ret_door);
void swarm_quiet(struct swarm *swarm);

#endif
