/* story_tasks - tasks from the first queue to the next one of its name: see story.h. The
 * coordinator and the worker say what they have to say until it is answered, and after a broker's
 * start who they are and what they hold. 1 done with a long result; 2 and 3 lost with their worker,
 * done by the next; 4 fails; 5 and 6 are cancelled when that is raised. */
#include "tests/faults/story.h"

#include "broker/core/tasks/tasks.h"

#include <inttypes.h>

#define COORDINATOR_ROUTE 700
#define WORKER_ROUTE 800
#define PART 3000
#define PARTS 2
#define FAILING 4
#define FIRST_TASKS 4

enum stage {
    OPENING,
    VALUE,
    ADDING,
    WORKING,
    LOSING,
    WORKING_AGAIN,
    MORE,
    RAISING,
    PAGES,
    RESULT,
    RELEASING,
    LEAVING,
    ANEW,
    OVER
};

static enum muster_status read_pages(struct story *story);

/* --- saying ----------------------------------------------------------------------------------- */

static enum muster_status feed(struct story *story, uint64_t route, struct wire_msg message)
{
    bool worker = route >= WORKER_ROUTE;
    enum muster_status status;

    message.up =
        (struct wire_up){.job = story->f.job,
                         .role = worker ? ROLE_WORKER : ROLE_TOOL,
                         .incarnation = worker ? story->tasks.worker : story->tasks.coordinator};
    story->f.now += 10;
    core_feed(&story->f, route, &message);
    status = read_pages(story);
    return status != MUSTER_OK ? status : story_write_and_tell(story);
}

static enum muster_status tick(struct story *story)
{
    story->f.now += 500;
    core_tick(&story->f);
    return story_write_and_tell(story);
}

static enum muster_status open_queue(struct story *story)
{
    struct wire_msg message = {.type = WIRE_QUEUE_OPEN};

    message.u.queue_open = (struct wire_queue_open){.nonce = 5, .name = "main", .fresh = true};
    return feed(story, COORDINATOR_ROUTE, message);
}

static enum muster_status add_value(struct story *story)
{
    struct wire_msg message = {.type = WIRE_RESOURCE_ADD};

    message.u.resource_add = (struct wire_resource_add){
        .queue = story->tasks.queue, .number = 1, .fn = "make", .args = {(const uint8_t *)"r", 1}};
    return feed(story, COORDINATOR_ROUTE, message);
}

static enum muster_status add_tasks(struct story *story, uint64_t to)
{
    struct wire_msg message = {.type = WIRE_TASKS_ADD};
    struct wire_task_entry entries[STORY_TASKS];

    for (uint64_t number = 1; number <= to; number++) /* the taken ones are repetitions */
        entries[number - 1] = (struct wire_task_entry){
            .number = number, .fn = "work", .args = {(const uint8_t *)"a", 1}};
    message.u.tasks_add.queue = story->tasks.queue;
    message.u.tasks_add.tasks.items = entries;
    message.u.tasks_add.tasks.count = to;
    return feed(story, COORDINATOR_ROUTE, message);
}

static enum muster_status say(struct story *story, enum wire_type type)
{
    const uint64_t queue = story->tasks.queue;
    struct wire_msg message = {.type = type};

    if (type == WIRE_RAISE)
        message.u.raise = (struct wire_raise){queue, 1, 0};
    else if (type == WIRE_TASKS_GET)
        message.u.tasks_get = (struct wire_tasks_get){queue, 9, 1, 0};
    else if (type == WIRE_RESULT_GET)
        message.u.result_get = (struct wire_result_get){queue, 1, 0};
    else if (type == WIRE_QUEUE_BEAT)
        message.u.queue_beat = (struct wire_queue_beat){queue, FIRST_TASKS, 0};
    else if (type == WIRE_WORK_LEAVE)
        message.u.work_leave.nonce = 8;
    return feed(story, type == WIRE_WORK_LEAVE ? WORKER_ROUTE : COORDINATOR_ROUTE, message);
}

static enum muster_status worker_hello(struct story *story)
{
    struct story_of_tasks *t = &story->tasks;
    struct wire_lease_entry entries[STORY_HELD_MAX + 1];
    struct wire_msg message = {.type = WIRE_WORK_HELLO};

    for (size_t i = 0; i < t->held_count; i++)
        entries[i] = (struct wire_lease_entry){.queue = t->queue,
                                               .number = t->held[i].number,
                                               .attempt = t->held[i].attempt,
                                               .kind = (uint64_t)t->held[i].kind};
    if (t->made)
        entries[t->held_count] = (struct wire_lease_entry){
            .queue = t->queue, .number = 1, .kind = TASK_KIND_RESOURCE, .code = 1};
    message.u.work_hello =
        (struct wire_work_hello){.nonce = 3, .host = "h", .pid = 4, .slots = 2, .takes = 2};
    message.u.work_hello.held.items = entries;
    message.u.work_hello.held.count = t->held_count + t->made;
    return feed(story, WORKER_ROUTE, message);
}

static uint8_t part[PART];

static enum muster_status send_part(struct story *story, const struct story_held *held)
{
    struct wire_msg message = {.type = WIRE_WORK_PART};

    message.u.work_part = (struct wire_work_part){.queue = story->tasks.queue,
                                                  .number = held->number,
                                                  .attempt = held->attempt,
                                                  .offset = story->tasks.parts_have,
                                                  .bytes = {part, PART}};
    return feed(story, WORKER_ROUTE, message);
}

/* What the worker does with the first that it holds. */
static enum muster_status work(struct story *story)
{
    const struct story_held *held = &story->tasks.held[0];
    struct wire_ended_entry entry = {.queue = story->tasks.queue,
                                     .number = held->number,
                                     .attempt = held->attempt,
                                     .kind = (uint64_t)held->kind,
                                     .state = TASK_DONE,
                                     .text = ""};
    struct wire_msg message = {.type = WIRE_WORK_DONE};

    if (held->kind == TASK_KIND_TASK && held->number == 1) {
        if (story->tasks.parts_have < (uint64_t)PART * PARTS)
            return send_part(story, held);
        entry.bytes = (uint64_t)PART * PARTS;
    } else if (held->kind == TASK_KIND_TASK && held->number == FAILING) {
        entry.state = TASK_FAILED;
        entry.status = MUSTER_E_TASK;
        entry.text = "it does not work";
    }
    message.u.work_done.tasks.items = &entry;
    message.u.work_done.tasks.count = 1;
    return feed(story, WORKER_ROUTE, message);
}

/* --- what comes next -------------------------------------------------------------------------- */

static void next_stage(struct story *story)
{
    story->stage++;
}

/* The worker dies, and nobody says so. */
static enum muster_status lose(struct story *story)
{
    if (tasks_worker_find(story->f.core, story->tasks.worker) != NULL)
        return tick(story);
    story->tasks.worker++;
    story->tasks.held_count = 0;
    story->tasks.made = story->tasks.welcomed = false;
    next_stage(story);
    return MUSTER_OK;
}

static bool has_ended(const struct story *story, uint64_t number)
{
    return tasks_find(story->f.core, story->tasks.queue, number) == NULL;
}

static enum muster_status serve(struct story *story)
{
    bool over = story->stage == WORKING
                    ? has_ended(story, 1)
                    : has_ended(story, 2) && has_ended(story, 3) && has_ended(story, FAILING);

    if (!story->tasks.welcomed)
        return worker_hello(story);
    if (over && (story->stage == WORKING || story->tasks.held_count == 0)) {
        next_stage(story);
        return MUSTER_OK;
    }
    return story->tasks.held_count > 0 ? work(story) : tick(story);
}

static enum muster_status turn(struct story *story)
{
    if (story->stage != OVER && !story->tasks.opened)
        return open_queue(story);
    switch ((enum stage)story->stage) {
    case OPENING:
        next_stage(story);
        return MUSTER_OK;
    case VALUE:
        return add_value(story);
    case ADDING:
        return add_tasks(story, FIRST_TASKS);
    case WORKING:
    case WORKING_AGAIN:
        return serve(story);
    case LOSING:
        return lose(story);
    case MORE:
        return add_tasks(story, STORY_TASKS);
    case RAISING:
        if (!story->tasks.welcomed) /* an error waits for what each worker has to say */
            return worker_hello(story);
        return say(story, WIRE_RAISE);
    case PAGES:
        return say(story, WIRE_TASKS_GET);
    case RESULT:
        return say(story, WIRE_RESULT_GET);
    case RELEASING:
        return say(story, WIRE_QUEUE_BEAT);
    case LEAVING:
        if (!story->tasks.welcomed)
            return worker_hello(story);
        return say(story, WIRE_WORK_LEAVE);
    case ANEW:
        story->tasks.opened = false; /* by another coordinator */
        story->tasks.coordinator++;
        next_stage(story);
        return open_queue(story);
    case OVER:
        break;
    }
    if (!story->tasks.opened)
        return open_queue(story);
    story->over = true;
    return MUSTER_OK;
}

/* --- the ledger ------------------------------------------------------------------------------- */

static void again(struct story *story)
{
    if (story->tasks.coordinator == 0)
        story->tasks.coordinator = 7000, story->tasks.worker = 8000;
    story->tasks.opened = story->tasks.welcomed = false;
}

/* As the loop does once the batch is written; there is nothing in it then. */
static enum muster_status read_page(struct story *story, struct wire_tasks_page page)
{
    enum muster_status status = store_task_page(story->store, &page, &story->err);

    if (status != MUSTER_OK) /* the coordinator is told that, and asks again */
        return story_read_again(story, MUSTER_E_STORAGE);
    if (page.tasks.count != STORY_TASKS)
        story_wrong(story, "%zu tasks that ended are in a page", page.tasks.count);
    story->stage = RESULT;
    return MUSTER_OK;
}

static enum muster_status read_result(struct story *story, const struct wire_result_get *asked)
{
    struct wire_result_chunk chunk = {0};

    if (store_task_result(story->store, asked, &chunk, &story->err) != MUSTER_OK)
        return story_read_again(story, MUSTER_E_STORAGE);
    if (chunk.total != (uint64_t)PART * PARTS || chunk.bytes.size != PART ||
        memcmp(chunk.bytes.data, part, PART) != 0)
        story_wrong(story, "a result of %" PRIu64 " bytes, %zu of them at once", chunk.total,
                    chunk.bytes.size);
    story->stage = RELEASING;
    return MUSTER_OK;
}

static enum muster_status read_pages(struct story *story)
{
    for (size_t i = 0; i < story->f.out.count; i++) {
        const struct action *action = &story->f.out.items[i];

        if (action->kind == ACTION_SEND_TASKS)
            return read_page(story, action->message.u.tasks_page);
        if (action->kind == ACTION_SEND_TASK_RESULT)
            return read_result(story, &action->message.u.result_get);
    }
    return MUSTER_OK;
}

static void take_work(struct story *story, const struct wire_work *work)
{
    struct story_of_tasks *t = &story->tasks;

    for (size_t i = 0; i < work->tasks.count; i++) {
        const struct wire_task_entry *entry = &work->tasks.items[i];
        bool known = false;

        for (size_t k = 0; k < t->held_count; k++)
            known = known || (t->held[k].number == entry->number &&
                              t->held[k].kind == (enum wire_task_kind)entry->kind);
        if (known)
            continue;
        if (t->held_count == STORY_HELD_MAX) {
            story_wrong(story, "a worker is given more than it takes");
            return;
        }
        t->held[t->held_count++] =
            (struct story_held){entry->number, entry->attempt, (enum wire_task_kind)entry->kind};
        if (entry->kind != TASK_KIND_RESOURCE && entry->number == 1)
            t->parts_have = 0;
    }
}

static void take_taken(struct story *story, const struct wire_work_taken *taken)
{
    struct story_of_tasks *t = &story->tasks;

    for (size_t i = 0; i < taken->tasks.count; i++) {
        const struct wire_lease_entry *entry = &taken->tasks.items[i];

        if (entry->code == MUSTER_E_NOT_FOUND && entry->number == 1)
            t->parts_have = 0; /* the parts first */
        if (entry->code == MUSTER_E_NOT_FOUND || t->held_count == 0 ||
            t->held[0].number != entry->number)
            continue;
        t->made = t->made || entry->kind == TASK_KIND_RESOURCE;
        t->held_count--;
        memmove(&t->held[0], &t->held[1], t->held_count * sizeof t->held[0]);
    }
}

static void take_ended(struct story *story, const struct wire_tasks_ended *ended)
{
    for (size_t i = 0; i < ended->tasks.count; i++) {
        const struct wire_ended_entry *entry = &ended->tasks.items[i];
        enum wire_task_state *told = &story->tasks.ended[entry->number];

        if (*told != TASK_NONE)
            story_wrong(story, "task %" PRIu64 " ends twice", entry->number);
        *told = (enum wire_task_state)entry->state;
    }
}

static void note_for_coordinator(struct story *story, const struct wire_msg *m)
{
    struct story_of_tasks *t = &story->tasks;

    if (m->type == WIRE_QUEUE_OPENED) {
        t->opened = m->u.queue_opened.code == MUSTER_OK;
        t->queue = m->u.queue_opened.queue;
        if (story->stage == OVER && m->u.queue_opened.taken != 0)
            story_wrong(story, "a queue that was begun anew has %" PRIu64 " tasks",
                        m->u.queue_opened.taken);
    } else if (m->type == WIRE_RESOURCE_TAKEN && story->stage == VALUE) {
        next_stage(story);
    } else if (m->type == WIRE_TASKS_TAKEN) {
        t->taken = m->u.tasks_taken.taken;
        if ((story->stage == ADDING && t->taken == FIRST_TASKS) ||
            (story->stage == MORE && t->taken == STORY_TASKS))
            next_stage(story);
    } else if (m->type == WIRE_TASKS_ENDED) {
        take_ended(story, &m->u.tasks_ended);
    } else if (m->type == WIRE_RAISED && story->stage == RAISING) {
        if (m->u.raised.number != FAILING || m->u.raised.cancelled_to != STORY_TASKS)
            story_wrong(story, "the error of task %" PRIu64 " is raised", m->u.raised.number);
        next_stage(story);
    } else if (m->type == WIRE_QUEUE_ALIVE && story->stage == RELEASING &&
               m->u.queue_alive.code == MUSTER_OK) {
        t->released = true;
        next_stage(story);
    }
}

static void note_for_worker(struct story *story, const struct wire_msg *m)
{
    struct story_of_tasks *t = &story->tasks;

    if (m->type == WIRE_WORK_WELCOME) {
        t->welcomed = m->u.work_welcome.code == MUSTER_OK;
    } else if (m->type == WIRE_WORK) {
        take_work(story, &m->u.work);
    } else if (m->type == WIRE_WORK_TAKEN) {
        take_taken(story, &m->u.work_taken);
    } else if (m->type == WIRE_PART_TAKEN) {
        t->parts_have = m->u.part_taken.have;
    } else if (m->type == WIRE_WORK_LEFT && story->stage == LEAVING) {
        t->left = true;
        next_stage(story);
    }
}

static void note(struct story *story, const struct action *action)
{
    if (action->kind == ACTION_SEND && action->route == WORKER_ROUTE && story->stage != LOSING)
        note_for_worker(story, &action->message);
    else if (action->kind == ACTION_SEND && action->route == COORDINATOR_ROUTE)
        note_for_coordinator(story, &action->message);
}

static uint64_t id_of(const struct story *story, uint64_t number)
{
    return story->tasks.queue << 40 | number;
}

/* Whatever was told: it is there, or it was released, or the queue was begun again. */
static void verify_queue(struct story *story)
{
    const struct story_of_tasks *t = &story->tasks;

    story_verify_number(story, "how many tasks were taken",
                        "SELECT taken FROM task_queue WHERE queue = ?1", t->queue,
                        (int64_t)t->taken);
    for (uint64_t number = 1; number <= STORY_TASKS && story->stage < RELEASING; number++)
        if (t->ended[number] != TASK_NONE)
            story_verify_number(
                story, "a task that ended",
                t->ended[number] == TASK_DONE
                    ? "SELECT count(*) FROM task WHERE id = ?1 AND state = 'done'"
                    : "SELECT count(*) FROM task WHERE id = ?1 AND state = 'failed'",
                id_of(story, number), 1);
    for (size_t i = 0; i < t->held_count && story->stage != LOSING; i++)
        if (t->held[i].kind == TASK_KIND_TASK)
            story_verify_number(story, "an attempt that a worker has",
                                "SELECT count(*) FROM task WHERE id = ?1 AND state <> 'queued'",
                                id_of(story, t->held[i].number), 1);
    if (story->stage > RAISING)
        story_verify_number(story, "minus the tasks that an error did not cancel",
                            "SELECT -count(*) FROM task WHERE id >> 40 = ?1 AND state = 'queued'",
                            t->queue, 0);
    if (t->released)
        story_verify_number(story, "minus the released tasks that are there",
                            "SELECT -count(*) FROM task WHERE id <= ?1", id_of(story, FIRST_TASKS),
                            0);
}

static void verify(struct story *story)
{
    const struct story_of_tasks *t = &story->tasks;

    if (story->stage > OPENING && story->stage < OVER)
        verify_queue(story);
    if (t->left)
        story_verify_number(story, "a worker that left",
                            "SELECT count(*) FROM task_worker WHERE incarnation = ?1 AND"
                            " state = 'left'",
                            t->worker, 1);
    if (story->over)
        story_verify_number(story, "minus the tasks of the queue that was begun anew",
                            "SELECT -count(*) FROM task", 0, 0);
}

const struct story_plot story_tasks = {
    .turn = turn, .again = again, .note = note, .verify = verify};
