/* config - what the operator wants of musterd: flags, environment and a file, under one set of
 * names.
 * `--listen X`, MUSTER_LISTEN=X and `listen = X` in the file of --config are the same; the first of
 * them in this order wins, then the default.
 * Never: opens anything but the configuration file. */
#ifndef BROKER_CONFIG_H
#define BROKER_CONFIG_H

#include "broker/log.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stdint.h>

struct config {
    char *listen;    /* "ipc:///..." or "tcp://..." */
    char *db;        /* path of the database */
    char *shared;    /* address of a PostgreSQL database; NULL: none */
    char *port_file; /* NULL = none */
    char *relay;     /* addresses of brokers: it is no broker but a relay; NULL = a broker */
    char *key_file;  /* a relay's; NULL = none */
    char *metrics;   /* "HOST:PORT", NULL = none */
    enum log_format log_format;
    enum log_level log_level;
    int64_t join_timeout_ms; /* 0 = JOIN_TIMEOUT_MS */
    int64_t keep_jobs;       /* ended ones, 0 = all; */
    int64_t keep_jobs_days;  /* 0 = for ever */
    bool allow_network_fs;
    bool sign;         /* manifests */
    bool migrate;      /* the database, and end */
    bool check_config; /* print what counts, and end */
    bool show_help;    /* then nothing else was checked */
    bool show_version;
};

/* Fills a config. MUSTER_E_ARGUMENT: a name or value that is not known, with its place and what may
 * stand there. MUSTER_E_IO: the file. Free with config_free, also after a failure. */
enum muster_status config_parse(int argc, char *const *argv, struct config *ret_config,
                                struct muster_error *err);
void config_free(struct config *config);

/* The options that count, as a file for --config. Owned; NULL: no memory. */
char *config_text(const struct config *config);

/* The help text: a static string. */
const char *config_help(void);

/* Defaults: root has /var/lib/muster and /run/muster, others what XDG says. MUSTER_E_ARGUMENT: the
 * environment names no place for a database. Returns owned strings, free with free(). */
enum muster_status config_default_db(unsigned uid, char **ret_path, struct muster_error *err);
enum muster_status config_default_listen(unsigned uid, char **ret_endpoint,
                                         struct muster_error *err);

#endif
