/* loop_internal - what loop.c and loop_send.c share: the loop itself.
 * loop.c receives, decides and writes; loop_send.c sends what was committed. */
#ifndef BROKER_LOOP_INTERNAL_H
#define BROKER_LOOP_INTERNAL_H

#include "broker/loop.h"

#include "broker/metrics.h"
#include "broker/outbox.h"
#include "broker/report.h"

#define LACKING_MAX 1024 /* nodes of one pass that the journal cannot serve */

struct lacking {
    uint64_t route;
    char job[JOB_NAME_MAX + 1];
};

struct loop {
    struct store *store;
    struct bus *bus;
    struct core *core;
    int signal_fd;
    int64_t now_boot_ms;
    int64_t now_unix_ms;
    int64_t started_unix_ms;

    uint64_t epoch_written;      /* the core jumps above what nodes know, and then writes it */
    struct actions batch;        /* being built, or kept because it could not be written */
    struct actions free_outputs; /* of inputs taken while the batch is kept */
    bool blocked;
    struct muster_error blocked_by;
    int64_t blocked_since_ms;
    int64_t blocked_since_unix_ms; /* the time that the rows of that batch have */
    int64_t retry_boot_ms;
    int64_t retry_ms;
    unsigned ticks_late;

    struct lacking lacking[LACKING_MAX];
    size_t lacking_count;

    struct loop_counters counters;
    struct report report;

    enum muster_status failure; /* of a job's rows that could not be read: final */
    struct muster_error failed;

    struct turns *turns;                     /* NULL: there are no keys */
    struct metrics *metrics;                 /* NULL: nobody asks for them */
    int64_t disk_free_bytes, disk_looked_ms; /* at that boot time */
    struct arena arena;                      /* of one decoded frame */
    struct store_rows rows;
    struct outbox outbox;
    uint8_t frame[WIRE_EVENT_MAX];
};

/* --- loop_send.c --- */

/* The head of an answer: while a batch is kept, the head tells nothing of that batch. */
struct wire_msg loop_answer_to(struct loop *loop, const char *job, enum wire_type type);
/* Takes out of a head what is not in the database yet. */
void loop_lower_head(struct loop *loop, struct wire_down *head);
void loop_publish_message(struct loop *loop, const char *job, const struct wire_msg *message);
void loop_send_message(struct loop *loop, uint64_t route, const struct wire_msg *message);
/* Writes the metrics if somebody waits for them. */
void loop_write_metrics(struct loop *loop);
/* Messages that were held back for another to the same peer, and are due. */
void loop_send_held(struct loop *loop, int64_t until_boot_ms);
/* Sends the batch's hints, before its commit. */
void loop_publish_hints(struct loop *loop);
/* Sends the outputs of the committed batch. It returns only errors after which the process cannot
 * go on. */
enum muster_status loop_send_all(struct loop *loop, struct muster_error *err);
/* While a batch is kept: the outputs that tell nothing of it. */
enum muster_status loop_send_free_outputs(struct loop *loop, struct muster_error *err);

#endif
