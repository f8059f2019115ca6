/* hosts - see hosts.h. */
#include "tools/run/hosts.h"

#include "client/query/query_address.h"
#include "client/query/query_link.h"
#include "node/clock.h"
#include "tools/run/supervise_rank.h"

#include <muster/client.h>

#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOSTS_STOP_MS 2000
#define HOSTS_NAP_MS 10

/* The words of `muster run` to the small process; the end of the socket says: leave. */
struct hosts_order {
    int64_t ended; /* this launch */
    bool leave;    /* for good */
};

/* --- the small process ------------------------------------------------------------------------ */

struct speaker {
    int fd;
    const struct hosts_options *options;
    muster_client_t *client;
    struct wire_host host;
    char name[HOST_MAX + 1];
    char address[HOST_MAX + 1];
    int64_t told;                     /* the newest launch that was told */
    int64_t gone_told;                /* ... and the one of which a host is gone */
    int64_t grow_asked;               /* ... and the one that was asked to save and end */
    char text[MUSTER_ERROR_TEXT_MAX]; /* the last that was told */
};

static void hosts_speaker_tell(struct speaker *s, const struct hosts_message *message)
{
    if (send(s->fd, message, sizeof *message, MSG_NOSIGNAL) < 0)
        _exit(0); /* nobody is left to hear it */
}

static void hosts_speaker_say(struct speaker *s, enum hosts_news news, const char *text)
{
    struct hosts_message message = {.news = news};

    if (news == HOSTS_WAIT && strcmp(s->text, text) == 0)
        return;
    snprintf(s->text, sizeof s->text, "%s", text);
    snprintf(message.text, sizeof message.text, "%s", text);
    hosts_speaker_tell(s, &message);
}

/* The address by which packets to the broker leave; where that is a local socket, this host's. */
static void hosts_address_towards(const char *broker, char *ret_address, size_t size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    char host[ADDRESS_HOST_MAX + 1];
    const char *port = NULL;
    int fd;

    snprintf(ret_address, size, "127.0.0.1");
    if (broker == NULL || !query_address_host(broker, host, &port) ||
        getaddrinfo(host, port, &hints, &found) != 0)
        return;
    fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &length) == 0)
        getnameinfo((struct sockaddr *)&own, length, ret_address, (socklen_t)size, NULL, 0,
                    NI_NUMERICHOST);
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
}

static void hosts_place_tell(struct speaker *s, int64_t launch)
{
    struct hosts_message message = {.news = HOSTS_PLACE, .launch = launch, .place = -1};
    muster_rows_t *rows = NULL;
    char id[17];

    if (muster_client_hosts(s->client, s->options->job, launch, &rows, NULL) != MUSTER_OK)
        return; /* it is asked for again */
    snprintf(id, sizeof id, "%016llx", (unsigned long long)s->host.id);
    message.count = (int)muster_rows_count(rows);
    for (int i = 0; i < message.count; i++) {
        const struct muster_host_row *row = &muster_rows_hosts(rows)[i];

        if (i == 0) {
            snprintf(message.address, sizeof message.address, "%s", row->address);
            message.port = (int)row->port;
        }
        if (strcmp(row->id, id) == 0) {
            message.place = i;
            message.first_rank = (int)row->first_rank;
        }
        message.world_size += (int)row->ranks;
    }
    muster_rows_destroy(&rows);
    if (message.place < 0)
        return;
    s->told = launch;
    s->text[0] = '\0';
    hosts_speaker_tell(s, &message);
}

/* Other hosts wait, and the launch has room for them: it saves now, and all begin again
 * together. */
static void hosts_grow(struct speaker *s, const char *why)
{
    char id[64];

    if (s->grow_asked == s->told)
        return;
    snprintf(id, sizeof id, HOSTS_GROW_ID "%lld", (long long)s->told);
    if (muster_client_notify(s->client, s->options->job, id, 0, -1, why, NULL, NULL) == MUSTER_OK)
        s->grow_asked = s->told;
}

/* For its next launch. */
static bool hosts_speaker_waits(const struct speaker *s)
{
    return (int64_t)s->host.ended >= s->told;
}

static void hosts_speaker_gone(struct speaker *s, int64_t launch, const char *who)
{
    if (launch > s->told)
        s->host.ended = (uint64_t)(s->told = launch); /* over before it began here */
    else if (s->gone_told < s->told) {
        s->gone_told = s->told;
        hosts_speaker_say(s, HOSTS_GONE, who);
    }
}

static void hosts_speaker_ask(struct speaker *s)
{
    struct muster_error err = {.text = ""};
    int64_t launch = 0;
    enum muster_status status;

    if (hosts_speaker_waits(s))
        s->host.port = (uint64_t)rank_free_port(INADDR_ANY);
    status = client_host(s->client, s->options->job, &s->host, &launch, &err);
    switch (status) {
    case MUSTER_OK:
    case MUSTER_PREEMPTED:
        if (launch > s->told)
            hosts_place_tell(s, launch);
        else if (status == MUSTER_PREEMPTED)
            hosts_grow(s, err.text);
        break;
    case MUSTER_E_PEER:
        hosts_speaker_gone(s, launch, err.text);
        break;
    case MUSTER_E_BUSY:
        hosts_speaker_say(s, HOSTS_WAIT, err.text);
        break;
    case MUSTER_E_BROKER: /* in a launch this is no news: its ranks say so themselves */
        if (s->told == 0)
            hosts_speaker_say(s, HOSTS_WAIT, err.text);
        break;
    case MUSTER_E_STORAGE:
    case MUSTER_E_NOMEM:
        break;
    default:
        hosts_speaker_say(s, HOSTS_REFUSED, err.text);
        _exit(0);
    }
}

/* Until it is time to speak again. False: `muster run` wants no more of it. */
static bool hosts_speaker_hear(struct speaker *s)
{
    struct pollfd ready = {.fd = s->fd, .events = POLLIN};
    struct hosts_order order;

    if (poll(&ready, 1, hosts_speaker_waits(s) ? RESEND_MIN_MS : HEARTBEAT_MS) <= 0)
        return true;
    if (recv(s->fd, &order, sizeof order, 0) != (ssize_t)sizeof order)
        return false;
    if ((uint64_t)order.ended > s->host.ended)
        s->host.ended = (uint64_t)order.ended;
    return !order.leave;
}

static void hosts_speaker_main(int fd, const struct hosts_options *o, pid_t parent)
    __attribute__((noreturn));

static void hosts_speaker_main(int fd, const struct hosts_options *o, pid_t parent)
{
    struct speaker s = {.fd = fd, .options = o};
    struct muster_error err = {.text = ""};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "muster-host");
    if (getppid() != parent)
        _exit(0);
    gethostname(s.name, sizeof s.name - 1);
    if (o->address != NULL)
        snprintf(s.address, sizeof s.address, "%s", o->address);
    else
        hosts_address_towards(o->broker, s.address, sizeof s.address);
    s.host = (struct wire_host){.name = s.name,
                                .address = s.address,
                                .ranks = (uint64_t)o->ranks,
                                .min = (uint64_t)o->min,
                                .max = (uint64_t)o->max,
                                .wait_ms = (uint64_t)o->wait_ms,
                                .node_rank = o->node_rank};
    while (s.host.id == 0)
        if (getrandom(&s.host.id, sizeof s.host.id, 0) < 0)
            s.host.id = (uint64_t)clock_ms(CLOCK_MONOTONIC) << 20 | (uint64_t)getpid();
    if (muster_client_open(o->broker, HOSTS_ASK_MS, &s.client, &err) != MUSTER_OK) {
        hosts_speaker_say(&s, HOSTS_REFUSED, err.text);
        _exit(0);
    }
    do
        hosts_speaker_ask(&s);
    while (hosts_speaker_hear(&s));
    s.host.leaving = true;
    client_host(s.client, o->job, &s.host, &(int64_t){0}, NULL);
    _exit(0);
}

/* --- `muster run` ----------------------------------------------------------------------------- */

bool hosts_start(struct hosts *ret, const struct hosts_options *options)
{
    int fds[2];
    pid_t parent = getpid();

    *ret = (struct hosts){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return false;
    ret->pid = fork();
    if (ret->pid == 0) {
        close(fds[0]);
        hosts_speaker_main(fds[1], options, parent);
    }
    close(fds[1]);
    ret->fd = fds[0];
    if (ret->pid > 0)
        return true;
    ret->pid = 0;
    close(ret->fd);
    ret->fd = -1;
    return false;
}

enum hosts_news hosts_read(struct hosts *hosts, struct hosts_message *ret_message)
{
    ssize_t size =
        hosts->fd < 0 ? 0 : recv(hosts->fd, ret_message, sizeof *ret_message, MSG_DONTWAIT);

    if (size < 0)
        return HOSTS_NOTHING;
    if (size != (ssize_t)sizeof *ret_message)
        *ret_message = (struct hosts_message){.news = HOSTS_REFUSED};
    if (ret_message->news != HOSTS_REFUSED)
        return ret_message->news;
    if (hosts->refused[0] == '\0')
        snprintf(hosts->refused, sizeof hosts->refused, "%s",
                 ret_message->text[0] != '\0'
                     ? ret_message->text
                     : "the process that tells the broker of this host has ended");
    snprintf(ret_message->text, sizeof ret_message->text, "%s", hosts->refused);
    if (hosts->fd >= 0)
        close(hosts->fd);
    hosts->fd = -1;
    return HOSTS_REFUSED;
}

void hosts_ended(struct hosts *hosts, int64_t launch, bool leave)
{
    const struct hosts_order order = {.ended = launch, .leave = leave};

    if (hosts->fd >= 0)
        (void)send(hosts->fd, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void hosts_stop(struct hosts *hosts)
{
    int64_t end_ms = clock_ms(CLOCK_BOOTTIME) + HOSTS_STOP_MS;

    if (hosts->pid <= 0)
        return;
    if (hosts->fd >= 0)
        close(hosts->fd);
    while (waitpid(hosts->pid, NULL, WNOHANG) == 0) {
        if (clock_ms(CLOCK_BOOTTIME) >= end_ms)
            kill(hosts->pid, SIGKILL);
        poll(NULL, 0, HOSTS_NAP_MS);
    }
    *hosts = (struct hosts){.fd = -1};
}
