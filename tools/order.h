/* order - what became of a save that was asked for, as its job's rounds tell.
 * Never: the broker, the clock, output. */
#ifndef TOOLS_ORDER_H
#define TOOLS_ORDER_H

#include <muster/client.h>

enum order_state {
    ORDER_UNKNOWN,  /* its round is not among the rows */
    ORDER_WAITS,    /* an attempt at it is open */
    ORDER_PROMISED, /* it was aborted to be tried again, and that attempt is not there yet: it
                     * comes, or the launch ends */
    ORDER_OVER,     /* saved, or given up */
};

/* Looks at the rows of a job's rounds, from the order's round on. *ret_index: the row that tells
 * the outcome, else the last attempt's; it is not set if the order's round is not known. */
enum order_state order_look(const muster_rows_t *rounds, int64_t order_round, size_t *ret_index);

#endif
