/* turn.c - one call at a time. An object of C belongs to one thread, and C calls Python back in the
 * middle of a call. If a signal handler, a callable or another thread uses the object meanwhile,
 * it is refused. Part of the module muster._native. */
#include <stdatomic.h>
#include <stdbool.h>

struct muster_py_turn {
    atomic_bool taken;
    muster_node_t *node;        /* of Node.step; NULL = it is closed */
    muster_manager_t *manager;  /* of Manager.should_save; NULL = it is closed */
    struct muster_error *error; /* of these calls */
    bool raised;                /* a callable of Python's raised inside such a call */
};

static bool muster_py_turn_take(struct muster_py_turn *turn)
{
    return !atomic_exchange_explicit(&turn->taken, true, memory_order_acquire);
}

static void muster_py_turn_give(struct muster_py_turn *turn)
{
    atomic_store_explicit(&turn->taken, false, memory_order_release);
}

enum {
    MUSTER_PY_IN_A_CALL = -1,
    MUSTER_PY_RAISED = -2, /* the status is MUSTER_OK, but a callable raised */
    MUSTER_PY_SAVES = -3,  /* MUSTER_OK, and this step is saved */
};

/* The boundary of Node.step: a status, or one of the first two above. It takes one argument, since
 * cffi needs as long for each as for the call. */
static int muster_py_step(struct muster_py_turn *turn)
{
    int status;

    if (!muster_py_turn_take(turn))
        return MUSTER_PY_IN_A_CALL;
    turn->raised = false;
    status = (int)muster_node_save_if_preempted(turn->node, NULL, turn->error);
    if (turn->raised && status == MUSTER_OK)
        status = MUSTER_PY_RAISED;
    muster_py_turn_give(turn);
    return status;
}

/* The boundary of Manager.should_save: a status, or one of the three above. */
static int muster_py_should_save(struct muster_py_turn *turn, int64_t step, bool force)
{
    bool saves = false;
    int status;

    if (!muster_py_turn_take(turn))
        return MUSTER_PY_IN_A_CALL;
    turn->raised = false;
    status = (int)(force ? muster_manager_begin_save(turn->manager, step, &saves, turn->error)
                         : muster_manager_should_save(turn->manager, step, &saves, turn->error));
    if (status == MUSTER_OK)
        status = turn->raised ? MUSTER_PY_RAISED : saves ? MUSTER_PY_SAVES : MUSTER_OK;
    muster_py_turn_give(turn);
    return status;
}
