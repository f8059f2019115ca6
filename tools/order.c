#include "tools/order.h"

#include <string.h>

static bool order_is_saved(const struct muster_round_row *round)
{
    return strcmp(round->state, "committed") == 0 || strcmp(round->state, "unchanged") == 0;
}

static bool order_is_aborted(const struct muster_round_row *round)
{
    return strcmp(round->state, "aborted") == 0;
}

/* Is `round` a further attempt at the save of the order's round? It was opened for the same cause,
 * or a notice took over that save, or the broker owes it to an operator who joined an open
 * round. */
static bool order_is_attempt(const struct muster_round_row *order,
                             const struct muster_round_row *round)
{
    return strcmp(round->cause, order->cause) == 0 || strcmp(round->cause, "operator") == 0 ||
           strcmp(round->cause, "termination") == 0;
}

/* The order's round is to be tried again. Another cause's round may lie before the next attempt: if
 * it saves, the checkpoint that was asked for is there, and its failure is none of the order's. (As
 * settles() in broker/core/rounds/round.c, by which the broker knows what it owes; a policy's is no
 * answer.) A later launch's rounds are not looked at. */
static enum order_state order_look_behind(const struct muster_round_row *round, size_t count,
                                          size_t *ret_index)
{
    size_t last = 0, open = 0, given_up = 0;

    for (size_t i = 1; i < count && round[i].generation == round[0].generation; i++) {
        bool aborted = order_is_aborted(&round[i]);

        if (strcmp(round[i].cause, "policy") == 0)
            continue;
        if (order_is_saved(&round[i])) {
            *ret_index = i;
            return ORDER_OVER;
        }
        if (!order_is_attempt(&round[0], &round[i]))
            continue;
        last = i;
        open = aborted ? open : i;
        given_up = aborted && round[i].final && given_up == 0 ? i : given_up;
    }
    *ret_index = open > 0 ? open : given_up > 0 ? given_up : last;
    return open > 0 ? ORDER_WAITS : given_up > 0 ? ORDER_OVER : ORDER_PROMISED;
}

enum order_state order_look(const muster_rows_t *rounds, int64_t order_round, size_t *ret_index)
{
    const struct muster_round_row *round = muster_rows_rounds(rounds);

    if (round == NULL || round->round != order_round)
        return ORDER_UNKNOWN;
    if (order_is_aborted(round) && !round->final)
        return order_look_behind(round, muster_rows_count(rounds), ret_index);
    *ret_index = 0;
    return order_is_saved(round) || order_is_aborted(round) ? ORDER_OVER : ORDER_WAITS;
}
