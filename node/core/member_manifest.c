/* member_manifest - the manifests that this node writes beside its shards: fetched in chunks, one
 * after another. */
#include "node/core/member_state.h"

#include <stdio.h>

static void manifest_ask(struct member *m)
{
    struct wire_msg message = message_make(WIRE_MANIFEST_GET);

    message.u.manifest_get =
        (struct wire_manifest_get){.checkpoint = m->manifest, .offset = m->manifest_have};
    if (m->link == LINK_JOINED) {
        message_send(m, &message, 0);
        m->manifest_asked++;
    }
    m->manifest_ask_at = m->now + RESEND_MIN_MS;
}

/* A node that closes waits on for the next part, or for its end on the disk. */
static void manifest_comes(struct member *m)
{
    m->manifest_asked = 0;
    m->manifest_late = m->now + ENDING_MS;
    if (m->stays_until < m->manifest_late)
        m->stays_until = m->manifest_late;
}

static void manifest_start(struct member *m, uint64_t checkpoint)
{
    m->manifest = checkpoint;
    m->manifest_total = m->manifest_have = 0;
    m->manifest_writing = false;
    manifest_comes(m);
    manifest_ask(m);
}

/* In this launch nobody waits for it any more. */
static void manifest_tell_given_up(struct member *m, uint64_t checkpoint)
{
    struct wire_msg message = message_make(WIRE_MANIFEST_DONE);

    message.u.manifest_done = (struct wire_manifest_done){.checkpoint = checkpoint, .path = ""};
    request_put(m, &message);
}

/* One at a time, each to its end: a checkpoint without its manifest is repaired only if it is the
 * one that is resumed from. */
void manifest_begin(struct member *m, uint64_t checkpoint)
{
    if (m->manifest == checkpoint)
        return;
    for (size_t i = 0; i < m->manifests_waiting_count; i++)
        if (m->manifests_waiting[i] == checkpoint)
            return;
    if (m->manifest == 0)
        manifest_start(m, checkpoint);
    else if (m->manifests_waiting_count < MANIFESTS_WAITING_MAX)
        m->manifests_waiting[m->manifests_waiting_count++] = checkpoint;
    else {
        member_log(m, 1,
                   "checkpoint %llu stays without a manifest: %d manifests already wait to be "
                   "written; save less often",
                   (unsigned long long)checkpoint, MANIFESTS_WAITING_MAX);
        manifest_tell_given_up(m, checkpoint);
    }
}

void manifest_chunk(struct member *m, const struct wire_manifest_chunk *chunk)
{
    if (m->manifest == 0 || m->manifest_writing || chunk->checkpoint != m->manifest ||
        chunk->offset != m->manifest_have || chunk->total == 0)
        return;
    if (m->manifest_bytes == NULL) {
        m->manifest_bytes = malloc(chunk->total);
        if (m->manifest_bytes == NULL)
            return; /* asked for again */
        m->manifest_total = chunk->total;
        m->manifest_generation = chunk->round_generation;
        m->manifest_step = chunk->step;
    }
    if (chunk->total != m->manifest_total ||
        chunk->bytes.size > m->manifest_total - m->manifest_have)
        return;
    memcpy(m->manifest_bytes + m->manifest_have, chunk->bytes.data, chunk->bytes.size);
    m->manifest_have += chunk->bytes.size;
    if (chunk->bytes.size > 0)
        manifest_comes(m); /* of many files it comes in many parts */
    if (m->manifest_have < m->manifest_total) {
        manifest_ask(m);
        return;
    }
    uint8_t *copy = arena_alloc(&m->out->arena, m->manifest_total);
    if (copy == NULL) { /* asked for again, from its beginning */
        free(m->manifest_bytes);
        m->manifest_bytes = NULL;
        m->manifest_have = 0;
        return;
    }
    memcpy(copy, m->manifest_bytes, m->manifest_total);
    struct member_action *action = member_add(m, MEMBER_WRITE_MANIFEST);
    action->generation = m->manifest_generation;
    action->round = m->manifest;
    action->step = m->manifest_step;
    action->bytes = copy;
    action->bytes_count = m->manifest_total;
    m->manifest_writing = true;
    m->manifest_ask_at = NEVER;
}

static void manifest_forget(struct member *m)
{
    free(m->manifest_bytes);
    m->manifest_bytes = NULL;
    m->manifest = 0;
    m->manifest_writing = false;
    m->manifest_ask_at = NEVER;
    if (m->manifests_waiting_count == 0)
        return;
    uint64_t next = m->manifests_waiting[0];
    m->manifests_waiting_count--;
    memmove(m->manifests_waiting, m->manifests_waiting + 1,
            m->manifests_waiting_count * sizeof m->manifests_waiting[0]);
    manifest_start(m, next);
}

/* A database that was restored from a copy does not know the checkpoint. The one that is to be
 * resumed from is asked for until all have joined, or have not. */
void manifest_look(struct member *m)
{
    if (m->manifest == 0 || m->manifest_writing || m->now < m->manifest_ask_at)
        return;
    if (m->view.started && m->manifest_asked >= MANIFEST_ASKS_MAX) {
        member_log(m, 1,
                   "the broker does not give the manifest of checkpoint %llu: the checkpoint stays "
                   "without one",
                   (unsigned long long)m->manifest);
        manifest_forget(m);
        return;
    }
    manifest_ask(m);
}

/* Why the choice could not be repaired. A checkpoint that the database lists may be gone from the
 * disk. */
static const char *manifest_why_not_repaired(struct member *m, const struct member_input *in)
{
    char text[TEXT_MAX + 1];

    if (in->code != MUSTER_E_NOT_FOUND)
        return member_text(m, in->text);
    snprintf(
        text, sizeof text,
        "%.2000s; if the broker's database was restored from an older copy, run `muster import "
        "%.1500s`, which takes what is there, and start the job again",
        in->text, m->options.checkpoint_dir);
    return member_text(m, text);
}

void manifest_done(struct member *m, const struct member_input *in, bool written)
{
    struct wire_msg message = message_make(WIRE_MANIFEST_DONE);

    if (in->checkpoint != m->manifest)
        return;
    if (written) {
        message.u.manifest_done =
            (struct wire_manifest_done){.checkpoint = in->checkpoint, .path = in->text};
    } else if (!m->view.started) { /* repairing the choice before the first step */
        message = message_make(WIRE_RESTORE_FAILED);
        message.u.restore_failed =
            (struct wire_restore_failed){.checkpoint = in->checkpoint,
                                         .step = m->manifest_step,
                                         .text = manifest_why_not_repaired(m, in)};
    } else {
        member_log(
            m, 1,
            "the manifest of checkpoint %llu could not be written (%s); the next launch repairs it",
            (unsigned long long)in->checkpoint, in->text);
        manifest_tell_given_up(m, in->checkpoint);
        manifest_forget(m);
        return;
    }
    request_put(m, &message);
    manifest_forget(m);
    if (m->part == PART_COMMITTED && m->manifest_until > m->now + MANIFEST_WAIT_MS)
        m->manifest_until = m->now + MANIFEST_WAIT_MS;
}
