/* What musterd makes of flags, environment and configuration file. */
#include "broker/bus.h"
#include "broker/config.h"
#include "broker/log.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {
    "MUSTER_LISTEN",          "MUSTER_DB",       "MUSTER_PORT_FILE",        "MUSTER_LOG_FORMAT",
    "MUSTER_JOIN_TIMEOUT_MS", "MUSTER_INSECURE", "MUSTER_ALLOW_NETWORK_FS", "MUSTER_CONFIG"};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

/* Arguments as one line of words. */
static enum muster_status parse(const char *line, struct config *config, struct muster_error *err)
{
    static char copy[1024];
    static char *argv[32];
    int argc = 1;

    argv[0] = (char[]){"musterd"};
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    return config_parse(argc, argv, config, err);
}

static void flags_are_taken_with_and_without_an_equals_sign(void **state)
{
    struct config config;
    struct muster_error err;

    (void)state;
    assert_int_equal(
        parse("--listen tcp://127.0.0.1:7700 --db=/tmp/x.db --port-file /tmp/p "
              "--log-format json --log-level warning --join-timeout-ms=5000 --allow-network-fs",
              &config, &err),
        MUSTER_OK);
    assert_string_equal(config.listen, "tcp://127.0.0.1:7700");
    assert_string_equal(config.db, "/tmp/x.db");
    assert_string_equal(config.port_file, "/tmp/p");
    assert_int_equal(config.log_format, LOG_FORMAT_JSON);
    assert_int_equal(config.log_level, LOG_LEVEL_WARNING);
    assert_int_equal(config.join_timeout_ms, 5000);
    assert_true(config.allow_network_fs);
    config_free(&config);
}

static void flag_beats_environment_beats_file(void **state)
{
    struct config config;
    struct muster_error err;
    char dir[SCRATCH_PATH_MAX];
    char line[SCRATCH_PATH_MAX + 64];
    const char text[] = "# comment\n\n db = /file.db \nlisten=ipc:///file\njoin_timeout_ms = 1\n";

    (void)state;
    scratch_make(dir);
    scratch_write(scratch_path(dir, "musterd.conf"), text, sizeof text - 1);
    setenv("MUSTER_DB", "/environment.db", 1);
    setenv("MUSTER_LISTEN", "ipc:///environment", 1);
    setenv("MUSTER_PORT_FILE", "", 1); /* empty is unset */
    snprintf(line, sizeof line, "--config %s/musterd.conf --listen ipc:///flag", dir);
    assert_int_equal(parse(line, &config, &err), MUSTER_OK);
    assert_string_equal(config.listen, "ipc:///flag");
    assert_string_equal(config.db, "/environment.db");
    assert_int_equal(config.join_timeout_ms, 1);
    assert_null(config.port_file);
    config_free(&config);
    scratch_remove(dir);
}

static void what_counts_is_printed_as_a_file(void **state)
{
    struct config config;
    struct muster_error err;
    char *text;

    (void)state;
    assert_int_equal(parse("--listen tcp://127.0.0.1:7700 --db /x.db --metrics 127.0.0.1:7790 "
                           "--log-level debug --keep-jobs 7 --check-config",
                           &config, &err),
                     MUSTER_OK);
    assert_true(config.check_config);
    text = config_text(&config);
    assert_string_equal(text, "listen = tcp://127.0.0.1:7700\ndb = /x.db\n"
                              "metrics = 127.0.0.1:7790\nlog_format = text\nlog_level = debug\n"
                              "keep_jobs = 7\nkeep_jobs_days = 365\nallow_network_fs = no\n"
                              "sign = no\n");
    free(text);
    config_free(&config);
}

static void a_password_is_not_printed(void **state)
{
    static const char *const cases[][2] = {
        {"postgresql://u:secret@h:5432/d", "postgresql://u:***@h:5432/d"},
        {"postgresql://u:sec@ret@h/d?password=secret&user=x",
         "postgresql://u:***@h/d?password=***&user=x"},
        {"postgresql://u:sec/ret@h/d?sslpassword=secret", "postgresql://u:***@h/d?sslpassword=***"},
        {"host=h password=secret", "host=h password=***"},
        {"postgresql://h:5432,i:5432/d?user=u", "postgresql://h:5432,i:5432/d?user=u"},
    };
    struct config config = {.listen = NULL};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[200];

        config.shared = strdup(cases[i][0]);
        char *text = config_text(&config);
        snprintf(line, sizeof line, "shared = %s\n", cases[i][1]);
        assert_non_null(strstr(text, line));
        assert_null(strstr(text, "sec"));
        free(text);
        config_free(&config);
    }
}

static void what_is_not_understood_is_named(void **state)
{
    static const struct {
        const char *line;
        const char *named;
    } cases[] = {
        {"--frobnicate", "--frobnicate"},
        {"--dbx /tmp/x", "--dbx"},
        {"serve", "serve"},
        {"--db", "--db needs a value"},
        {"--db=", "is not a value"},
        {"--log-format xml", "text or json"},
        {"--join-timeout-ms soon", "milliseconds"},
        {"--join-timeout-ms 0", "milliseconds"},
        {"--insecure", "--insecure is gone: nobody on a network is let in without a key"},
        {"--insecure", "muster key add NAME --job JOB"},
        {"--allow-network-fs=perhaps", "yes or no"},
        {"--config /does/not/exist", "/does/not/exist"},
        {"--listen udp://x:1", "tcp://HOST:PORT"},
    };
    struct config config;
    struct muster_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_not_equal(parse(cases[i].line, &config, &err), MUSTER_OK);
        if (strstr(err.text, cases[i].named) == NULL)
            fail_msg("%s: \"%s\" does not name \"%s\"", cases[i].line, err.text, cases[i].named);
        config_free(&config);
    }
}

static void a_wrong_line_of_the_file_is_named_with_its_number(void **state)
{
    static const struct {
        const char *text;
        const char *named;
    } cases[] = {
        {"db = /x\nwrong = 1\n", "line 2: there is no option wrong"},
        {"db\n", "line 1: write NAME = VALUE"},
        {"\n\nallow-network-fs = maybe\n", "line 3: allow-network-fs"},
        {"insecure = yes\n", "line 1: insecure is gone"},
    };
    struct config config;
    struct muster_error err;
    char dir[SCRATCH_PATH_MAX];

    (void)state;
    scratch_make(dir);
    setenv("MUSTER_CONFIG", scratch_path(dir, "conf"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_write(scratch_path(dir, "conf"), cases[i].text, strlen(cases[i].text));
        assert_int_equal(parse("", &config, &err), MUSTER_E_ARGUMENT);
        if (strstr(err.text, cases[i].named) == NULL)
            fail_msg("\"%s\" does not name \"%s\"", err.text, cases[i].named);
        config_free(&config);
    }
    scratch_remove(dir);
}

static void only_this_host_may_reach_a_broker_without_keys(void **state)
{
    static const struct {
        const char *listen;
        bool local;
    } cases[] = {
        {"tcp://127.0.0.1:7700", true},      {"tcp://127.0.0.1:*", true},
        {"tcp://127.8.9.10:1", true},        {"tcp://localhost:7700", true},
        {"tcp://[::1]:7700", true},          {"ipc:///run/muster/broker.sock", true},
        {"tcp://0.0.0.0:7700", false},       {"tcp://*:7700", false},
        {"tcp://10.0.0.1:7700", false},      {"tcp://eth0:7700", false},
        {"tcp://127.evil.example:7", false}, {"tcp://localhost.evil:7700", false},
        {"tcp://[::]:7700", false},
    };
    struct muster_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum muster_status status = bus_check_listen(cases[i].listen, "/x.db", &err);

        if ((status == MUSTER_OK) != cases[i].local)
            fail_msg("%s: %s", cases[i].listen, muster_status_name(status));
        if (!cases[i].local)
            assert_non_null(strstr(err.text, "`muster key add NAME --job JOB --db /x.db` and "
                                             "`musterd --db /x.db --listen tcp://"));
        assert_int_equal(bus_check_listen(cases[i].listen, NULL, &err), MUSTER_OK);
    }
}

static void addresses_that_cannot_be_used_are_refused_also_with_keys(void **state)
{
    static const char *const cases[] = {
        "",
        "ipc://",
        "ipc://@hidden",
        "ipc://relative/path",
        "ipc:///dir/",
        "tcp://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:65535",
        "tcp://:7700",
        "tcp://host:-1",
        "tcp://127.0.0.1:77x",
        "inproc://x",
        "ipc://*",
    };
    struct muster_error err;
    char path[160];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (bus_check_listen(cases[i], NULL, &err) != MUSTER_E_ARGUMENT)
            fail_msg("\"%s\" was accepted", cases[i]);
    }
    snprintf(path, sizeof path, "ipc:///%099d", 0); /* 100 bytes of path: with ".events" 107 */
    assert_int_equal(bus_check_listen(path, "/x.db", &err), MUSTER_OK);
    snprintf(path, sizeof path, "ipc:///%0100d", 0);
    assert_int_equal(bus_check_listen(path, "/x.db", &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "at most 100"));
}

static void defaults_follow_xdg_and_root_has_its_own(void **state)
{
    char *text = NULL;
    struct muster_error err;

    (void)state;
    assert_int_equal(config_default_db(0, &text, &err), MUSTER_OK);
    assert_string_equal(text, "/var/lib/muster/muster.db");
    assert_int_equal(config_default_listen(0, &text, &err), MUSTER_OK);
    assert_string_equal(text, "ipc:///run/muster/broker.sock");

    setenv("XDG_STATE_HOME", "/state", 1);
    setenv("XDG_RUNTIME_DIR", "/runtime", 1);
    setenv("HOME", "/home/u", 1);
    assert_int_equal(config_default_db(1000, &text, &err), MUSTER_OK);
    assert_string_equal(text, "/state/muster/muster.db");
    assert_int_equal(config_default_listen(1000, &text, &err), MUSTER_OK);
    assert_string_equal(text, "ipc:///runtime/muster/broker.sock");

    setenv("XDG_STATE_HOME", "relative", 1);
    unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(config_default_db(1000, &text, &err), MUSTER_OK);
    assert_string_equal(text, "/home/u/.local/state/muster/muster.db");
    assert_int_equal(config_default_listen(1000, &text, &err), MUSTER_OK);
    assert_string_equal(text, "ipc:///tmp/muster-1000/broker.sock");

    unsetenv("HOME");
    assert_int_equal(config_default_db(1000, &text, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "--db"));
    free(text);
}

static void help_and_version_come_before_every_other_check(void **state)
{
    struct config config;
    struct muster_error err;

    (void)state;
    assert_int_equal(parse("--frobnicate --help", &config, &err), MUSTER_OK);
    assert_true(config.show_help);
    config_free(&config);
    assert_int_equal(parse("--version", &config, &err), MUSTER_OK);
    assert_true(config.show_version);
    config_free(&config);
    assert_non_null(strstr(config_help(), "--listen"));
}

static void a_log_line_cannot_be_broken_from_outside(void **state)
{
    char line[256];

    (void)state;
    broker_log_line(LOG_FORMAT_TEXT, LOG_LEVEL_WARNING, 1700000000123, "job \"a\nb\" \033[31m\\",
                    line, sizeof line);
    assert_string_equal(line, "2023-11-14T22:13:20.123Z warning: job \"a\\x0ab\" \\x1b[31m\\\\");
    broker_log_line(LOG_FORMAT_JSON, LOG_LEVEL_INFO, 1700000000123, "job \"a\nb\"", line,
                    sizeof line);
    assert_string_equal(line, "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\","
                              "\"text\":\"job \\\"a\\\\x0ab\\\"\"}");
    broker_log_line(LOG_FORMAT_JSON, LOG_LEVEL_INFO, 0, "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", line,
                    80);
    assert_string_equal(line + strlen(line) - 2, "\"}"); /* cut, but whole */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(flags_are_taken_with_and_without_an_equals_sign, clear_environment),
        cmocka_unit_test_setup(flag_beats_environment_beats_file, clear_environment),
        cmocka_unit_test_setup(what_counts_is_printed_as_a_file, clear_environment),
        cmocka_unit_test_setup(what_is_not_understood_is_named, clear_environment),
        cmocka_unit_test_setup(a_wrong_line_of_the_file_is_named_with_its_number,
                               clear_environment),
        cmocka_unit_test_setup(only_this_host_may_reach_a_broker_without_keys, clear_environment),
        cmocka_unit_test_setup(addresses_that_cannot_be_used_are_refused_also_with_keys,
                               clear_environment),
        cmocka_unit_test_setup(defaults_follow_xdg_and_root_has_its_own, clear_environment),
        cmocka_unit_test_setup(help_and_version_come_before_every_other_check, clear_environment),
        cmocka_unit_test(a_password_is_not_printed),
        cmocka_unit_test(a_log_line_cannot_be_broken_from_outside),
    };

    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
