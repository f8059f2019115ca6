/* prog_finishes US AFTER_MS - takes three steps. In the last one it sets a timer that sends it
 * SIGTERM US microseconds later. Then it closes its node, goes on for AFTER_MS as a program's own
 * end does, and exits with what close says. */
#include <muster/muster.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int step(void *arg)
{
    ++*(int64_t *)arg;
    return 0;
}

static bool arm(long us)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
    const struct itimerspec once = {.it_value = {.tv_nsec = us * 1000 + 1}};
    timer_t timer;

    return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
           timer_settime(timer, 0, &once, NULL) == 0;
}

int main(int argc, char **argv)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    struct muster_error err = {.text = ""};
    muster_state_t *state = NULL;
    muster_node_t *node = NULL;
    int64_t weight = 0;

    if (argc != 3 || muster_state_create(&state, NULL) != MUSTER_OK ||
        muster_state_add_i64(state, "weight", &weight, NULL) != MUSTER_OK)
        return 2;
    options.state = state;
    if (muster_node_open(&options, &node, &err) != MUSTER_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    bool first_life = muster_node_total_run_calls(node) == 0;
    while (muster_node_total_run_calls(node) < 3) {
        if (first_life && muster_node_total_run_calls(node) == 2 && !arm(strtol(argv[1], NULL, 10)))
            return 2;
        if (muster_node_run(node, step, &weight, &err) != MUSTER_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    if (muster_node_close(&node, 0, &err) != MUSTER_OK)
        return 1;
    poll(NULL, 0, (int)strtol(argv[2], NULL, 10));
    muster_state_destroy(&state);
    return 0;
}
