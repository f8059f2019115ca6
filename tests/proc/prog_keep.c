/* prog_keep - a chief with policies: every step is saved (with a SAVE policy: when that says so),
 * what the policies do not want is deleted behind it. prog_keep KEEP SAVE TRASH STEPS FINAL
 * [CUSTOM]    policies as text; FINAL 1: at its end the newest may go Its state is the number of
 * steps done. Says `resumed N` at its beginning and `done N` at its end. */
#include "client/node/node_private.h"

#include <muster/node.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_MS 20000

struct program {
    int64_t value;
    bool slow;
    muster_node_t *node;
};

static void must(enum muster_status status, const struct muster_error *err)
{
    if (status == MUSTER_OK)
        return;
    fprintf(stderr, "prog_keep: %s\n", err->text);
    exit(1);
}

static int one_step(void *arg)
{
    struct program *program = arg;

    if (program->slow)
        usleep(2000); /* the steps of a job that saves by time take some */
    program->value++;
    return 0;
}

static void tell_policies(const struct program *program, char **argv)
{
    struct wire_msg message = {.type = WIRE_POLICIES};
    struct muster_error err;

    message.u.policies = (struct wire_policies){.keep = argv[1], .save = argv[2], .trash = argv[3]};
    must(agent_ask(program->node->agent, &message, ASK_MS, NULL, &err), &err);
}

static void tell_metrics(const struct program *program, const char *custom)
{
    char metrics[64];
    struct muster_error err;

    snprintf(metrics, sizeof metrics, "{\"loss\": %d.5}", (int)(program->value * 7 % 10));
    must(agent_set_facts(program->node->agent, metrics, custom, &err), &err);
}

int main(int argc, char **argv)
{
    struct program program = {.slow = argc > 2 && argv[2][0] != '\0'};
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    muster_state_t *state = NULL;
    struct muster_error err;

    if (argc < 6)
        return 2;
    must(muster_state_create(&state, &err), &err);
    must(muster_state_add_i64(state, "value", &program.value, &err), &err);
    options.state = state;
    options.save_every_steps = argv[2][0] == '\0' ? 1 : 0;
    must(muster_node_open(&options, &program.node, &err), &err);
    printf("resumed %lld\n", (long long)program.value);
    fflush(stdout);
    tell_policies(&program, argv);
    for (int i = 0; i <= atoi(argv[4]);
         i++) { /* the boundary before the last one saves all before it */
        tell_metrics(&program, argc > 6 ? argv[6] : NULL);
        must(muster_node_run(program.node, one_step, &program, &err), &err);
    }
    must(agent_sweep(program.node->agent, atoi(argv[5]) == 1, ASK_MS, &err), &err);
    printf("done %lld\n", (long long)program.value);
    must(muster_node_close(&program.node, 0, &err), &err);
    muster_state_destroy(&state);
    return 0;
}
