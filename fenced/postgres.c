/* postgres - see postgres.h. */
#include "fenced/postgres.h"

#include "schema/error.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOSTS_MAX 16
#define CONNECT_WAIT_MS 500 /* of a call; the next call goes on with the same attempt */
#define HOST_WAIT_MS 1000   /* an attempt at one of several hosts */
#define WORDS_MAX 300

static int64_t postgres_boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One host of the address. libpq would wait for its name, and for the host, as long as it takes. */
struct host {
    char *name, *address, *port; /* NULL: not given */
    struct gaicb *lookup;        /* of the name, on its way; glibc's own thread writes into it */
    struct addrinfo *found, *at;
};

struct postgres {
    PGconn *conn; /* NULL: none, and none on its way */
    bool ready;   /* it may be asked */
    PostgresPollingStatusType next;
    int64_t try_until_ms;
    PQconninfoOption *options; /* of the address */
    struct host hosts[HOSTS_MAX];
    size_t host_count, turn;
    size_t failed, refused; /* hosts since the last connection, and of these for good */
    char why[WORDS_MAX];
    char unreplicated[WORDS_MAX]; /* what the server said of its replicas, to this question */
    struct postgres_use use;
    char name[POSTGRES_NAME_MAX];
    struct postgres *kept; /* the next one that could not be freed */
};

/* libpq's texts end with a line feed, and may have several lines. */
static void postgres_one_line(char *text, size_t size, const char *from)
{
    size_t length = 0;

    for (; *from != '\0' && length + 1 < size; from++)
        if (*from != '\n')
            text[length++] = *from;
        else if (from[1] != '\0' && length > 0 && text[length - 1] != ' ')
            text[length++] = ' ';
    text[length] = '\0';
}

static void postgres_drop(struct postgres *postgres)
{
    PQfinish(postgres->conn);
    postgres->conn = NULL;
    postgres->ready = false;
}

static enum muster_status postgres_unreachable(struct postgres *postgres, const char *doing,
                                               const char *why, struct muster_error *err)
{
    char words[WORDS_MAX];

    postgres_one_line(words, sizeof words, why);
    postgres_drop(postgres);
    return error_set(err, MUSTER_E_STORAGE, "cannot %s in the shared database %s: %s", doing,
                     postgres->name, words);
}

static bool postgres_wait(PGconn *conn, short events, int64_t until_ms)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = events};
    int64_t left;

    do {
        left = until_ms - postgres_boot_ms();
        if (left <= 0)
            return false;
    } while (poll(&fd, 1, (int)left) < 0 && errno == EINTR);
    return fd.revents != 0;
}

/* Of a question: its time begins again with each byte that goes or comes, up to an end. */
struct patience {
    int64_t until_ms, most_ms;
};

static bool postgres_progress(PGconn *conn, short events, struct patience *patience)
{
    int64_t until;

    if (!postgres_wait(conn, events, patience->until_ms))
        return false;
    until = postgres_boot_ms() + POSTGRES_WAIT_MS;
    patience->until_ms = until < patience->most_ms ? until : patience->most_ms;
    return true;
}

/* --- a statement ------------------------------------------------------------------------------ */

static bool postgres_pass_turn(struct postgres *postgres);

static const char *postgres_is_late(struct postgres *postgres)
{
    if (postgres->ready)
        postgres_pass_turn(postgres); /* this host may be dark, and the next one not */
    return "no answer in time";
}

/* NULL: it is on its way; else why not. */
static const char *postgres_send(struct postgres *postgres, const struct question *ask,
                                 struct patience *patience)
{
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX], formats[PARAMS_MAX], left;

    for (int i = 0; i < ask->count; i++) {
        const struct param *param = &ask->params[i];

        values[i] = param->data != NULL ? param->data : param->number;
        lengths[i] = param->size;
        formats[i] = param->data != NULL && param->size > 0;
    }
    if (!PQsendQueryParams(postgres->conn, ask->sql, ask->count, NULL, values, lengths, formats, 1))
        return PQerrorMessage(postgres->conn);
    while ((left = PQflush(postgres->conn)) == 1) {
        if (!postgres_progress(postgres->conn, POLLIN | POLLOUT, patience))
            return postgres_is_late(postgres);
        if (!PQconsumeInput(postgres->conn))
            break;
    }
    return left == 0 ? NULL : PQerrorMessage(postgres->conn);
}

/* Wrong password or role, no such database, no rights: time mends none of them. All others may
 * pass: no room, too many connections, a server that stops or starts, a statement's time; and two
 * brokers that make the tables at once. */
static bool postgres_is_final(const char *state)
{
    static const char *const classes[] = {"28", "3D", "3F", "42"};

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strncmp(state, classes[i], 2) == 0)
            return strncmp(state, "42P07", 5) != 0 && strncmp(state, "42710", 5) != 0;
    return false;
}

/* The server refused, and said why. The connection stays. */
static enum muster_status postgres_refused(struct postgres *postgres, const struct question *ask,
                                           PGresult *result, struct muster_error *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    char words[WORDS_MAX];
    bool final = state != NULL && !postgres->use.known && postgres_is_final(state);

    postgres_one_line(words, sizeof words,
                      PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) != NULL
                          ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)
                          : PQresultErrorMessage(result));
    PQclear(result);
    return error_set(err, final ? MUSTER_E_ARGUMENT : MUSTER_E_STORAGE,
                     "the shared database %s refuses to %s: %s", postgres->name, ask->doing, words);
}

/* NULL: the next result can be taken; else why not. */
static const char *postgres_await(struct postgres *postgres, struct patience *patience)
{
    while (PQisBusy(postgres->conn)) {
        if (!postgres_progress(postgres->conn, POLLIN, patience))
            return postgres_is_late(postgres);
        if (!PQconsumeInput(postgres->conn))
            return PQerrorMessage(postgres->conn);
    }
    return NULL;
}

static enum muster_status postgres_exchange(struct postgres *postgres, const struct question *ask,
                                            PGresult **ret_result, struct muster_error *err)
{
    int64_t now = postgres_boot_ms();
    struct patience patience = {now + POSTGRES_WAIT_MS, now + POSTGRES_MOST_MS};
    PGresult *result = NULL, *next;
    const char *why;

    *ret_result = NULL;
    postgres->unreplicated[0] = '\0';
    why = postgres_send(postgres, ask, &patience);
    for (;;) { /* an error at the commit comes as a second result */
        if (why == NULL)
            why = postgres_await(postgres, &patience);
        if (why != NULL) {
            PQclear(result);
            return postgres_unreachable(postgres, ask->doing, why, err);
        }
        if ((next = PQgetResult(postgres->conn)) == NULL)
            break;
        if (result == NULL || PQresultStatus(next) == PGRES_FATAL_ERROR) {
            PQclear(result);
            result = next;
        } else
            PQclear(next);
    }
    if (PQstatus(postgres->conn) != CONNECTION_OK || result == NULL) {
        PQclear(result);
        return postgres_unreachable(postgres, ask->doing, PQerrorMessage(postgres->conn), err);
    }
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        return postgres_refused(postgres, ask, result, err);
    if (ask->replicated && postgres->unreplicated[0] != '\0') {
        PQclear(result);
        return error_set(err, MUSTER_E_STORAGE, "cannot %s in the shared database %s for sure: %s",
                         ask->doing, postgres->name, postgres->unreplicated);
    }
    *ret_result = result;
    return MUSTER_OK;
}

int64_t postgres_int(const PGresult *result, int row, int column)
{
    uint64_t value = 0;

    if (row < PQntuples(result) && PQgetlength(result, row, column) == 8)
        memcpy(&value, PQgetvalue(result, row, column), 8);
    return (int64_t)be64toh(value);
}

/* --- a connection ----------------------------------------------------------------------------- */

static void postgres_set_name(struct postgres *postgres, const PGconn *conn)
{
    const char *host = PQhost(conn), *db = PQdb(conn);

    if (db != NULL && host != NULL && host[0] != '\0')
        snprintf(postgres->name, sizeof postgres->name, "%.100s on %.100s", db, host);
}

/* To the next address of this host, or (true) the next host. */
static bool postgres_pass_turn(struct postgres *postgres)
{
    struct host *host = &postgres->hosts[postgres->turn];

    if (host->at != NULL && (host->at = host->at->ai_next) != NULL)
        return false;
    if (host->found != NULL)
        freeaddrinfo(host->found);
    host->found = NULL;
    postgres->turn = (postgres->turn + 1) % postgres->host_count;
    return true;
}

/* Takes out of a verbose text of libpq its code and its line on the server's source. True: the code
 * is final. */
static bool postgres_take_code(char *text)
{
    char *line = strstr(text, "\nLOCATION:"), *at = text;
    bool final = false;

    if (line != NULL)
        *line = '\0';
    while ((at = strstr(at, ":  ")) != NULL) {
        at += 3;
        if (strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 &&
            strncmp(at + 5, ": ", 2) == 0) {
            final = postgres_is_final(at);
            memmove(at, at + 7, strlen(at + 7) + 1);
        }
    }
    return final;
}

static void postgres_attempt_failed(struct postgres *postgres, const char *why)
{
    char text[2 * WORDS_MAX], words[WORDS_MAX];
    size_t length = postgres->failed > 0 ? strlen(postgres->why) : 0;

    snprintf(text, sizeof text, "%s", why);
    bool final = postgres_take_code(text);
    postgres_one_line(words, sizeof words, text);
    snprintf(postgres->why + length, sizeof postgres->why - length, "%s%s", length > 0 ? "; " : "",
             words);
    postgres_drop(postgres);
    postgres->try_until_ms = 0;
    if (!postgres_pass_turn(postgres))
        return;
    postgres->failed++;
    postgres->refused += final;
}

/* host->lookup is NULL once its answer is there: a lookup cannot be called back. */
static bool postgres_lookup(struct host *host, int64_t until_ms, const char **ret_why)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct timespec left = {.tv_nsec = 20000000};

    if (host->lookup == NULL) {
        if ((host->lookup = calloc(1, sizeof *host->lookup)) == NULL)
            return false;
        host->lookup->ar_name = host->name;
        host->lookup->ar_request = &hints;
        if (getaddrinfo_a(GAI_NOWAIT, &host->lookup, 1, NULL) != 0) {
            free(host->lookup);
            host->lookup = NULL;
            return false;
        }
    }
    const struct gaicb *const list[] = {host->lookup};
    while (gai_error(host->lookup) == EAI_INPROGRESS) {
        if (postgres_boot_ms() >= until_ms)
            return false;
        gai_suspend(list, 1, &left);
    }
    if (gai_error(host->lookup) == 0)
        host->found = host->at = host->lookup->ar_result;
    else
        *ret_why = gai_strerror(gai_error(host->lookup));
    free(host->lookup);
    host->lookup = NULL;
    return host->found != NULL;
}

static bool postgres_needs_lookup(const struct host *host)
{
    return host->name != NULL && host->address == NULL && host->found == NULL &&
           host->name[0] != '\0' && host->name[0] != '/' && host->name[0] != '@';
}

/* libpq would write them on stderr, beside the log. A server whose wait for a synchronous replica
 * is cancelled says so in a warning alone. Its code is that of any warning; its place is its own.
 */
static void postgres_hears_notice(void *arg, const PGresult *notice)
{
    struct postgres *postgres = arg;
    const char *file = PQresultErrorField(notice, PG_DIAG_SOURCE_FILE);
    const char *text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);

    if (file != NULL && text != NULL && strcmp(file, "syncrep.c") == 0)
        postgres_one_line(postgres->unreplicated, sizeof postgres->unreplicated, text);
}

static bool postgres_start(struct postgres *postgres)
{
    const struct host *host = &postgres->hosts[postgres->turn];
    const char *names[64], *values[64];
    char address[NI_MAXHOST];
    size_t count = 0;

    for (const PQconninfoOption *option = postgres->options; option->keyword != NULL; option++)
        if (option->val != NULL && strcmp(option->keyword, "host") != 0 &&
            strcmp(option->keyword, "hostaddr") != 0 && strcmp(option->keyword, "port") != 0 &&
            count < sizeof names / sizeof *names - 5) {
            names[count] = option->keyword;
            values[count++] = option->val;
        }
    if (host->at == NULL || getnameinfo(host->at->ai_addr, host->at->ai_addrlen, address,
                                        sizeof address, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(address, sizeof address, "%s", host->address == NULL ? "" : host->address);
    const struct {
        const char *name, *value;
    } of_host[] = {{"host", host->name},
                   {"hostaddr", address[0] == '\0' ? NULL : address},
                   {"port", host->port},
                   {"fallback_application_name", postgres->use.read_ms > 0 ? "muster" : "musterd"}};
    for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++)
        if (of_host[i].value != NULL) {
            names[count] = of_host[i].name;
            values[count++] = of_host[i].value;
        }
    names[count] = values[count] = NULL;
    postgres->conn = PQconnectStartParams(names, values, 0);
    if (postgres->conn == NULL)
        return false;
    PQsetErrorVerbosity(postgres->conn, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(postgres->conn, postgres_hears_notice, postgres);
    postgres_set_name(postgres, postgres->conn);
    postgres->next = PGRES_POLLING_WRITING;
    return true;
}

/* Sets up a session. A batch counts as written once it is on the disk of the server and of its
 * synchronous replicas. A statement that this broker gave up, or that a dead broker left, ends by
 * itself. */
static enum muster_status postgres_session(struct postgres *postgres)
{
    struct question ask = {
        .sql = "SELECT current_setting('transaction_read_only')::boolean::int::bigint, "
               "set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
               "WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false), "
               "set_config('statement_timeout', '3000', false), "
               "set_config('lock_timeout', '1500', false), "
               "set_config('tcp_keepalives_idle', '5', false), "
               "set_config('tcp_keepalives_interval', '5', false), "
               "set_config('tcp_keepalives_count', '3', false)",
        .doing = "begin a session"};
    PGresult *result;
    struct muster_error why;
    enum muster_status status = postgres_exchange(postgres, &ask, &result, &why);

    if (status == MUSTER_OK && postgres->use.read_ms == 0 && postgres_int(result, 0, 0) != 0)
        status = error_set(&why, MUSTER_E_STORAGE,
                           "%s takes no writes now: it is a replica, or read-only", postgres->name);
    PQclear(result);
    if (status == MUSTER_OK) {
        postgres->ready = true;
        postgres->try_until_ms = 0;
        postgres->failed = postgres->refused = 0;
    } else
        postgres_attempt_failed(postgres, why.text);
    return status;
}

enum attempt { ATTEMPT_WAITS, ATTEMPT_FAILED, ATTEMPT_DONE };

static void postgres_poll(struct postgres *postgres, int64_t until_ms)
{
    while (postgres->conn != NULL && PQstatus(postgres->conn) != CONNECTION_BAD &&
           PQstatus(postgres->conn) != CONNECTION_OK &&
           postgres_wait(postgres->conn, postgres->next == PGRES_POLLING_READING ? POLLIN : POLLOUT,
                         until_ms))
        postgres->next = PQconnectPoll(postgres->conn);
}

/* Goes on with the attempt that is on its way, or begins one. */
static enum attempt postgres_attempt(struct postgres *postgres, int64_t until_ms)
{
    struct host *host = &postgres->hosts[postgres->turn];
    const char *why = NULL;

    if (postgres->try_until_ms == 0)
        postgres->try_until_ms =
            postgres_boot_ms() +
            (postgres->host_count > 1 || host->found != NULL ? HOST_WAIT_MS : POSTGRES_WAIT_MS);
    if (until_ms > postgres->try_until_ms)
        until_ms = postgres->try_until_ms;
    if (postgres->conn == NULL &&
        (!postgres_needs_lookup(host) || postgres_lookup(host, until_ms, &why)))
        postgres_start(postgres);
    postgres_poll(postgres, until_ms);
    if (postgres->conn != NULL && PQstatus(postgres->conn) == CONNECTION_OK) {
        PQsetErrorVerbosity(postgres->conn, PQERRORS_DEFAULT);
        PQsetnonblocking(postgres->conn, 1);
        postgres_set_name(postgres, postgres->conn);
        return postgres_session(postgres) == MUSTER_OK ? ATTEMPT_DONE : ATTEMPT_FAILED;
    }
    if (postgres->conn != NULL && PQstatus(postgres->conn) == CONNECTION_BAD)
        why = PQerrorMessage(postgres->conn);
    if (why == NULL && postgres_boot_ms() < postgres->try_until_ms)
        return ATTEMPT_WAITS;
    char text[WORDS_MAX];
    snprintf(text, sizeof text, "%.100s: %.180s", host->name == NULL ? "its host" : host->name,
             why == NULL ? "no connection in time" : why);
    postgres_attempt_failed(postgres, postgres->conn != NULL && why != NULL ? why : text);
    return ATTEMPT_FAILED;
}

static enum muster_status postgres_connect(struct postgres *postgres, const char *doing,
                                           struct muster_error *err)
{
    int64_t until =
        postgres_boot_ms() + (postgres->use.read_ms > 0 ? postgres->use.read_ms : CONNECT_WAIT_MS);
    enum attempt attempt;

    if (postgres->conn != NULL && postgres->ready && PQstatus(postgres->conn) == CONNECTION_OK)
        return MUSTER_OK;
    if (postgres->ready)
        postgres_drop(postgres);
    do {
        attempt = postgres_attempt(postgres, until);
    } while (attempt == ATTEMPT_FAILED && postgres->failed < postgres->host_count &&
             postgres_boot_ms() < until);
    if (attempt == ATTEMPT_DONE)
        return MUSTER_OK;
    bool final = !postgres->use.known && postgres->refused >= postgres->host_count;
    error_set(err, final ? MUSTER_E_ARGUMENT : MUSTER_E_STORAGE,
              "cannot %s in the shared database %s: %s", doing, postgres->name,
              postgres->why[0] == '\0' ? "no connection yet" : postgres->why);
    if (postgres->failed >= postgres->host_count)
        postgres->failed = postgres->refused = 0;
    return final ? MUSTER_E_ARGUMENT : MUSTER_E_STORAGE;
}

/* --- asking ----------------------------------------------------------------------------------- */

enum muster_status postgres_ask(struct postgres *postgres, const struct question *ask,
                                PGresult **ret_result, struct muster_error *err)
{
    enum muster_status status = postgres_connect(postgres, ask->doing, err);

    *ret_result = NULL;
    return status == MUSTER_OK ? postgres_exchange(postgres, ask, ret_result, err) : status;
}

struct param postgres_number(uint64_t value)
{
    struct param param = {.data = NULL};

    snprintf(param.number, sizeof param.number, "%" PRIu64, value);
    return param;
}

struct param postgres_text(const char *text)
{
    return (struct param){.data = text};
}

struct param postgres_bytes(const void *data, size_t size)
{
    return (struct param){.data = data, .size = (int)size};
}

/* --- life ------------------------------------------------------------------------------------- */

static const char *postgres_option(const PQconninfoOption *options, const char *name)
{
    for (; options != NULL && options->keyword != NULL; options++)
        if (strcmp(options->keyword, name) == 0)
            return options->val;
    return NULL;
}

/* An item of the list a,b,c. A list of one item holds for all. NULL: none. */
static char *postgres_item(const char *list, size_t at)
{
    if (list == NULL)
        return NULL;
    if (strchr(list, ',') != NULL)
        for (; at > 0; at--) {
            list = strchr(list, ',');
            if (list == NULL)
                return NULL;
            list++;
        }
    return strndup(list, strcspn(list, ","));
}

/* options: that name the hosts: the address, or the environment. */
static enum muster_status postgres_take_hosts(struct postgres *postgres,
                                              const PQconninfoOption *options,
                                              struct muster_error *err)
{
    const char *names = postgres_option(options, "host");
    const char *addresses = postgres_option(options, "hostaddr");
    const char *list = addresses != NULL ? addresses : names;

    postgres->host_count = 1;
    for (; list != NULL && (list = strchr(list, ',')) != NULL; list++)
        postgres->host_count++;
    if (postgres->host_count > HOSTS_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "%s takes %d hosts at most", postgres->use.option,
                         HOSTS_MAX);
    for (size_t i = 0; i < postgres->host_count; i++) {
        struct host *host = &postgres->hosts[i];

        host->name = postgres_item(names, i);
        host->address = postgres_item(addresses, i);
        host->port = postgres_item(postgres_option(options, "port"), i);
        if (host->name != NULL && host->name[0] != '\0' && strchr(host->name + 1, '@') != NULL)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "the host in the address of %s has an @ in it: in a password "
                             "write %%40 for each @, or give the password by PGPASSFILE",
                             postgres->use.option);
    }
    return MUSTER_OK;
}

static PQconninfoOption *postgres_defaults(const char *service)
{
    const char *before = getenv("PGSERVICE");
    char *kept = before != NULL ? strdup(before) : NULL;
    PQconninfoOption *defaults;

    if (service != NULL)
        setenv("PGSERVICE", service, 1);
    defaults = PQconndefaults();
    if (service != NULL && kept != NULL)
        setenv("PGSERVICE", kept, 1);
    else if (service != NULL)
        unsetenv("PGSERVICE");
    free(kept);
    return defaults;
}

/* PGHOST, PGSERVICE and their like stand for a host that the address does not name. libpq reads a
 * service's file for its defaults alone: so the address's service becomes the default. */
static enum muster_status postgres_find_hosts(struct postgres *postgres, struct muster_error *err)
{
    PQconninfoOption *defaults = NULL;
    const bool named = postgres_option(postgres->options, "host") != NULL ||
                       postgres_option(postgres->options, "hostaddr") != NULL;
    const char *service = postgres_option(postgres->options, "service");
    enum muster_status status;

    if (!named)
        defaults = postgres_defaults(service);
    if (defaults != NULL && postgres_option(defaults, "host") == NULL &&
        postgres_option(defaults, "hostaddr") == NULL) {
        PQconninfoFree(defaults);
        defaults = NULL;
    }
    status = postgres_take_hosts(postgres, defaults != NULL ? defaults : postgres->options, err);
    PQconninfoFree(defaults);
    return status;
}

enum muster_status postgres_open(const char *uri, const struct postgres_use *use,
                                 struct postgres **ret_postgres, struct muster_error *err)
{
    char *why = NULL;
    struct postgres *postgres = calloc(1, sizeof *postgres);
    enum muster_status status;

    if (postgres == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the shared database");
    postgres->use = *use;
    postgres->options = PQconninfoParse(uri, &why);
    PQfreemem(why); /* it may have a password in it */
    if (postgres->options == NULL)
        status = error_set(err, MUSTER_E_ARGUMENT,
                           "%s takes postgresql://HOST/DATABASE, as psql does; what was given "
                           "cannot be read",
                           use->option);
    else
        status = postgres_find_hosts(postgres, err);
    if (status != MUSTER_OK) {
        postgres_close(&postgres);
        return status;
    }
    snprintf(postgres->name, sizeof postgres->name, "of %s", use->option);
    *ret_postgres = postgres;
    return MUSTER_OK;
}

/* False: a lookup is on its way, and will still write into its memory. */
static bool postgres_free_host(struct host *host)
{
    free(host->address);
    free(host->port);
    if (host->found != NULL)
        freeaddrinfo(host->found);
    if (host->lookup != NULL && gai_cancel(host->lookup) == EAI_NOTCANCELED)
        return false;
    if (host->lookup != NULL && gai_error(host->lookup) == 0)
        freeaddrinfo(host->lookup->ar_result);
    free(host->lookup);
    free(host->name);
    return true;
}

void postgres_close(struct postgres **postgres)
{
    static struct postgres *kept;
    bool over = true;

    if (*postgres == NULL)
        return;
    PQfinish((*postgres)->conn);
    for (size_t i = 0; i < HOSTS_MAX; i++)
        over &= postgres_free_host(&(*postgres)->hosts[i]);
    PQconninfoFree((*postgres)->options);
    if (over) {
        free(*postgres);
    } else {
        (*postgres)->kept = kept;
        kept = *postgres;
    }
    *postgres = NULL;
}

void postgres_is_known(struct postgres *postgres)
{
    postgres->use.known = true;
}

bool postgres_was_right(const struct postgres *postgres)
{
    return postgres->use.known;
}

const char *postgres_name(const struct postgres *postgres)
{
    return postgres->name;
}
