/* consumer - a user's program: sees only what is installed. It opens a node where no broker is, and
 * is told so soon, by name and with what to do. */
#define _POSIX_C_SOURCE 200809L
#include <muster/muster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOWHERE "ipc:///tmp/muster-consumer-no-broker"
#define CONNECT_MS 300
#define SOON_S 5 /* sanitizers, and a machine that has other things to do */

static int complain(const char *what, const struct muster_error *error)
{
    fprintf(stderr, "consumer: %s: %s: %s\n", what, muster_status_name(error->status), error->text);
    return EXIT_FAILURE;
}

static int open_without_broker(const char *directory, struct muster_error *error)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    muster_node_t *node = NULL;
    struct timespec began, ended;
    enum muster_status status;

    options.broker = NOWHERE;
    options.job = "consumer";
    options.rank = 0;
    options.world_size = 1;
    options.checkpoint_dir = directory;
    options.connect_timeout_ms = CONNECT_MS;
    if (muster_state_create(&options.state, error) != MUSTER_OK)
        return complain("no state", error);
    clock_gettime(CLOCK_MONOTONIC, &began);
    status = muster_node_open(&options, &node, error);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    muster_node_close(&node, 0, NULL);
    muster_state_destroy(&options.state);
    if (status != MUSTER_E_BROKER)
        return complain("the status is not MUSTER_E_BROKER", error);
    if (strstr(error->text, NOWHERE) == NULL || strstr(error->text, "musterd") == NULL)
        return complain("the text names neither the address nor musterd", error);
    if (ended.tv_sec - began.tv_sec > SOON_S)
        return complain("that took too long", error);
    return EXIT_SUCCESS;
}

int main(void)
{
    char directory[] = "/tmp/muster-consumer-XXXXXX", remove[64];
    struct muster_error error = {.status = MUSTER_OK};
    int code;

    if (mkdtemp(directory) == NULL)
        return EXIT_FAILURE;
    code = open_without_broker(directory, &error);
    snprintf(remove, sizeof remove, "rm -rf %s", directory);
    if (system(remove) != 0 || code != EXIT_SUCCESS)
        return EXIT_FAILURE;
    printf("%s: %s\n", muster_status_name(MUSTER_E_BROKER), error.text);
    return EXIT_SUCCESS;
}
