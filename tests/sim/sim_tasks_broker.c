/* sim_tasks_broker - the broker of a world of tasks: the real core and database; it dies before and
 * after commits. */
#include "tests/sim/sim_tasks_private.h"

#include "schema/error.h"

#include <stdlib.h>
#include <string.h>

static void step_core(enum input_kind kind, uint64_t route, const struct wire_msg *message)
{
    const struct input input = {.kind = kind,
                                .now_boot_ms = w.now,
                                .now_unix_ms = 1700000000000 + w.now,
                                .route = route,
                                .message = message};

    sim_tasks_break_core(w.core, w.broken);
    core_step(w.core, &input, &w.out);
}

static void load_row(void *arg, const struct record *row)
{
    (void)arg;
    core_load(w.core, row);
}

static void broker_dies(void)
{
    core_destroy(&w.core);
    actions_clear(&w.out);
    sim_tasks_drop_frames(0);
    w.broker_back_ms = w.now + (int64_t)sim_tasks_below(3000);
    w.stats->broker_kills++;
}

/* T1, over everything that was ever committed. */
static void check_ends(void)
{
    for (size_t i = 0; i < w.out.count; i++) {
        const struct record *row = &w.out.items[i].record;

        if (w.out.items[i].kind == ACTION_PERSIST && row->kind == RECORD_TASK_STATE &&
            row->u.task.queue == w.queue && row->u.task.number < NUMBERS_MAX)
            w.excused[row->u.task.number] = row->u.task.excused;
        if (w.out.items[i].kind != ACTION_PERSIST || row->kind != RECORD_TASK_END ||
            row->u.task.queue != w.queue)
            continue;
        INSIST(row->u.task.number < NUMBERS_MAX && !w.ended[row->u.task.number],
               "task %llu ends twice", (unsigned long long)row->u.task.number);
        w.ended[row->u.task.number] = true;
        INSIST(w.broken != SIM_TASKS_SOUND || row->u.task.status != MUSTER_E_LOST ||
                   w.began[row->u.task.number] > 0,
               "task %llu is lost, and never began", (unsigned long long)row->u.task.number);
    }
}

/* What a start of the broker insists on holds in between, too. */
void sim_tasks_check_rows(void)
{
    struct muster_error err;

    INSIST(store_check_rows(w.store, &err) == MUSTER_OK, "%.200s", err.text);
    w.stats->checks++;
}

static struct task_link *link_of(uint64_t route)
{
    for (size_t i = 0; i <= WORKERS; i++)
        if (w.links[i] != NULL && w.links[i]->route == route)
            return w.links[i];
    return NULL;
}

/* As it is, or as a broker that is broken tells of it. */
static const char *told_unavailable(const char *text)
{
    static char first[TEXT_MAX + 1];

    if (text == NULL || w.broken == SIM_TASKS_MUTE)
        return "";
    if (w.broken != SIM_TASKS_GRUDGES)
        return text;
    if (first[0] == '\0')
        snprintf(first, sizeof first, "%s", text);
    return first;
}

static void send_action(const struct action *action)
{
    static uint8_t bytes[WIRE_FRAME_MAX];
    struct task_link *link = link_of(action->route);
    struct wire_msg message = action->message;
    struct muster_error err;
    size_t size;

    if (link == NULL)
        return;
    if (action->kind == ACTION_SEND && message.type == WIRE_WORK_TAKEN)
        for (size_t i = 0; i < message.u.work_taken.tasks.count; i++)
            w.stats->stale += message.u.work_taken.tasks.items[i].code == MUSTER_E_STALE;
    if (action->kind == ACTION_SEND_TASKS) {
        assert_int_equal(store_task_page(w.store, &message.u.tasks_page, &err), MUSTER_OK);
    } else if (action->kind == ACTION_SEND_TASK_RESULT) {
        const struct wire_result_get asked = message.u.result_get;
        message = (struct wire_msg){.type = WIRE_RESULT_CHUNK};
        core_fill_down(w.core, "train", &message.down);
        message.u.result_chunk = (struct wire_result_chunk){
            .queue = asked.queue, .number = asked.number, .offset = asked.offset};
        message.u.result_chunk.code =
            store_task_result(w.store, &asked, &message.u.result_chunk, &err);
    } else if (action->kind != ACTION_SEND) {
        return;
    }
    if (message.type == WIRE_QUEUE_ALIVE)
        message.u.queue_alive.unavailable = told_unavailable(message.u.queue_alive.unavailable);
    size = wire_encode(&message, bytes, sizeof bytes);
    INSIST(size > 0, "a %s cannot be encoded", wire_type_name(message.type));
    sim_tasks_put_frame(false, link, bytes, size);
}

static void commit_and_send(void)
{
    struct muster_error err;

    if (sim_tasks_one_in(400)) {
        broker_dies(); /* before the commit */
        return;
    }
    if (store_apply(w.store, &w.out, w.now, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    check_ends();
    if (sim_tasks_below(200) == 0)
        sim_tasks_check_rows();
    if (sim_tasks_one_in(400)) {
        broker_dies(); /* and nobody was told */
        return;
    }
    for (size_t i = 0; i < w.out.count; i++)
        send_action(&w.out.items[i]);
    actions_clear(&w.out);
}

void sim_tasks_broker_starts(void)
{
    const struct core_options options = {.start_id = 7000 + ++w.starts,
                                         .task_bytes_max = w.seed % 3 == 0 ? 1000 : 0,
                                         .events_endpoint = "ipc:///e"};
    struct muster_error err;

    w.broker_since_ms = w.now;
    w.core = core_create(&options);
    assert_non_null(w.core);
    if (store_load(w.store, load_row, NULL, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i <= WORKERS; i++)
        sim_tasks_reconnect(w.links[i]);
    step_core(INPUT_START, 0, NULL);
    commit_and_send();
}

void sim_tasks_broker_hears(uint64_t route, const struct wire_msg *message)
{
    step_core(INPUT_MESSAGE, route, message);
    commit_and_send();
}

void sim_tasks_broker_passes(void)
{
    static struct arena arena;
    struct frame frame;

    if (w.core == NULL) {
        if (w.now >= w.broker_back_ms)
            sim_tasks_broker_starts();
        return;
    }
    while (sim_tasks_take_frame(true, 0, &frame)) {
        struct wire_msg message;

        arena_reset(&arena);
        assert_int_equal(wire_decode(frame.bytes, frame.size, &arena, &message, NULL), MUSTER_OK);
        w.stats->messages[message.type]++;
        step_core(INPUT_MESSAGE, frame.route, &message);
        free(frame.bytes);
    }
    arena_free(&arena);
    step_core(INPUT_TICK, 0, NULL);
    commit_and_send();
}
