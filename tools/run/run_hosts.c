/* run_hosts - see run_hosts.h. */
#include "tools/run/run_hosts.h"

#include "node/clock.h"
#include "tools/render.h"
#include "tools/tool.h"

#include <muster/client.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>

static bool hosts_place_take(struct run *run, const struct hosts_message *message)
{
    struct muster_error err;
    char ranks[48];

    if (message->launch <= run->place.launch)
        return false;
    if (run->rank_count == 1)
        snprintf(ranks, sizeof ranks, "rank %d", message->first_rank);
    else
        snprintf(ranks, sizeof ranks, "ranks %d to %d", message->first_rank,
                 message->first_rank + run->rank_count - 1);
    if (run->ranks[0].rank != message->first_rank)
        for (int i = 0; i < run->rank_count; i++)
            files_forget(&run->files, run->ranks[i].rank);
    run->place = *message;
    for (int i = 0; i < run->rank_count; i++)
        run->ranks[i].rank = message->first_rank + i;
    run->command.world_size = message->world_size;
    run->command.node_rank = message->place;
    run->command.master_address = run->place.address;
    run->command.master_port = message->port;
    if (output_renumber(&run->output, message->first_rank, run->directory, &err) != MUSTER_OK)
        output_say(&run->output, "muster run: %s", err.text);
    output_note(&run->output,
                "muster run: launch %lld has %d host%s: this is host %d, with %s of %d",
                (long long)message->launch, message->count, run_plural(message->count),
                message->place, ranks, message->world_size);
    return true;
}

/* -1: nothing yet. 0: there is a place. Else an exit code. */
static int hosts_news_take(struct run *run)
{
    struct hosts_message message;

    switch (hosts_read(&run->hosts, &message)) {
    case HOSTS_PLACE:
        return hosts_place_take(run, &message) ? 0 : -1;
    case HOSTS_WAIT:
        output_note(&run->output, "muster run: waiting for hosts: %s", message.text);
        return -1;
    case HOSTS_REFUSED:
        output_say(&run->output, "muster run: this host cannot take part in job %s: %s", run->job,
                   message.text);
        return EXIT_CODE_NO_RESTART;
    default:
        return -1;
    }
}

static int hosts_told_to_end(struct run *run)
{
    output_say(&run->output, "muster run: told to end while it waited for hosts, exit code %d",
               run->command.restart_code);
    return run->command.restart_code;
}

int run_hosts_await(struct run *run)
{
    int64_t end_ms = clock_ms(CLOCK_BOOTTIME) + JOIN_TIMEOUT_MS;
    int code = -1;

    if (run->hosts.pid == 0)
        return -1;
    if (run->place.launch > 0)
        hosts_ended(&run->hosts, run->place.launch, false);
    while (code < 0) {
        struct pollfd ready[] = {{.fd = run->signal_fd, .events = POLLIN},
                                 {.fd = run->hosts.fd, .events = POLLIN}};
        int64_t left_ms = end_ms - clock_ms(CLOCK_BOOTTIME);

        if (left_ms <= 0) {
            output_say(&run->output,
                       "muster run: no launch was formed in %d s: start `muster run --nodes` on "
                       "more hosts, or lower its first number; exit code %d",
                       JOIN_TIMEOUT_MS / 1000, run->command.restart_code);
            return run->command.restart_code;
        }
        poll(ready, 2, left_ms > HEARTBEAT_MS ? HEARTBEAT_MS : (int)left_ms);
        if (run_signals_read(run))
            run_orphans_reap(run, false);
        if (run->sup.told_signo != 0)
            return hosts_told_to_end(run);
        code = hosts_news_take(run);
        output_write(&run->output.sinks[0]);
        output_write(&run->output.sinks[1]);
    }
    return code == 0 ? -1 : code;
}

/* A notice is muster's own if it makes room for hosts, or if a rank gave it because of our
 * SIGTERM. */
static bool hosts_is_of_this_host(const struct run *run, const struct muster_notice_row *notice)
{
    int first = run->ranks[0].rank;
    bool own = (run->host_gone || run->sup.now.term_sent) && strcmp(notice->kind, "signal") == 0;

    return !own && strcmp(notice->state, "cancelled") != 0 && render_ends(notice->kind) &&
           notice->rank >= first && notice->rank < first + run->rank_count &&
           strncmp(notice->id, HOSTS_GROW_ID, strlen(HOSTS_GROW_ID)) != 0;
}

static bool hosts_notices_find(struct run *run, muster_client_t *client)
{
    muster_rows_t *jobs = NULL, *rows = NULL;
    bool found = false;

    if (muster_client_jobs(client, run->job, &jobs, NULL) == MUSTER_OK &&
        muster_rows_count(jobs) > 0 &&
        muster_client_notices(client, run->job, NULL, muster_rows_jobs(jobs)[0].generation, &rows,
                              NULL) == MUSTER_OK)
        for (size_t i = 0; i < muster_rows_count(rows) && !found; i++) {
            const struct muster_notice_row *notice = &muster_rows_notices(rows)[i];

            found = hosts_is_of_this_host(run, notice);
            if (found)
                output_say(&run->output,
                           "muster run: this host was told to end (notice %s of rank %lld), and "
                           "takes no part in the next launch; exit code %d",
                           notice->id, (long long)notice->rank, run->command.restart_code);
        }
    muster_rows_destroy(&rows);
    muster_rows_destroy(&jobs);
    return found;
}

bool run_hosts_is_taken(struct run *run)
{
    muster_client_t *client = NULL;
    bool found;

    if (run->hosts.pid == 0 || run->sup.now.cause_kind != SUPERVISE_RESTART ||
        muster_client_open(run->command.broker, HOSTS_ASK_MS, &client, NULL) != MUSTER_OK)
        return false;
    found = hosts_notices_find(run, client);
    muster_client_close(&client, NULL);
    return found;
}
