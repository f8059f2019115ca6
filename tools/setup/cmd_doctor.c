/* cmd_doctor - checks what a job would find on this host with this environment; one line per check,
 * and how to mend it. Never: changes anything; a file that it writes to try a directory is gone
 * when it ends. */
#include "tools/setup/doctor.h"

#include "tools/render.h"
#include "tools/verbs.h"

#include "node/notice/sources.h"

#include <muster/node.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DOCTOR_CLOCK_MS 2000 /* farther apart than this is worth a word */

void doctor_say(struct doctor *doctor, const char *what, const char *mend, const char *format, ...)
{
    char text[MUSTER_ERROR_TEXT_MAX * 2];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    doctor->wrong += mend[0] != '\0';
    json_array_append_new(doctor->findings, json_pack("{s:s, s:b, s:s, s:s}", "what", what, "ok",
                                                      mend[0] == '\0', "text", text, "mend", mend));
}

/* --- the broker ------------------------------------------------------------------------------- */

static const struct muster_broker_row *doctor_fact(const muster_rows_t *rows, const char *name)
{
    static const struct muster_broker_row none = {.name = "", .number = -1, .text = ""};

    for (size_t i = 0; i < muster_rows_count(rows); i++)
        if (strcmp(muster_rows_broker(rows)[i].name, name) == 0)
            return &muster_rows_broker(rows)[i];
    return &none;
}

static void doctor_clock(struct doctor *doctor, const muster_rows_t *facts, int64_t asked_ms,
                         int64_t told_ms)
{
    int64_t theirs = doctor_fact(facts, "now_unix_ms")->number;
    int64_t apart = theirs - asked_ms, slack = told_ms - asked_ms + DOCTOR_CLOCK_MS;

    if (theirs < 0)
        return;
    if (apart > slack || apart < -DOCTOR_CLOCK_MS)
        doctor_say(doctor, "clock",
                   "let both hosts follow the same time servers (`timedatectl set-ntp true`)",
                   "this host's clock is %s %s the broker's: a deadline that a cloud tells as a "
                   "time of day would be wrong by as much",
                   render_duration(apart < 0 ? -apart : apart).text,
                   apart > 0 ? "behind" : "before");
    else
        doctor_say(doctor, "clock", "", "as the broker's");
}

/* Splits "tcp://HOST:PORT" in two; false: the address is of another kind. */
static bool doctor_split(const char *address, char host[256], char port[16])
{
    const char *colon = strrchr(address, ':');

    if (strncmp(address, "tcp://", 6) != 0 || colon <= address + 6)
        return false;
    snprintf(host, 256, "%.*s", (int)(colon - address - 6), address + 6);
    snprintf(port, 16, "%s", colon + 1);
    if (host[0] == '[') { /* IPv6 */
        memmove(host, host + 1, strlen(host));
        host[strcspn(host, "]")] = '\0';
    }
    return true;
}

/* Events come through a port of their own, which a firewall may close. */
static void doctor_ports(struct doctor *doctor, const muster_rows_t *facts)
{
    char host[256], port[16], ignored[256];
    const char *why = "";

    if (!doctor_split(doctor->tool->address, host, port) ||
        !doctor_split(doctor_fact(facts, "events_endpoint")->text, ignored, port))
        return;
    if (doctor_reaches(host, port, &why))
        doctor_say(doctor, "ports", "", "events come through port %s of %s", port, host);
    else
        doctor_say(doctor, "ports", "open that port in the firewall, beside the one before it",
                   "port %s of %s, through which events come, takes no connection (%s)", port, host,
                   why);
}

static void doctor_key(struct doctor *doctor, const muster_rows_t *facts)
{
    const char *file = getenv("MUSTER_KEY_FILE");
    struct stat info;

    if (file == NULL || file[0] == '\0' || strncmp(doctor->tool->address, "tcp://", 6) != 0) {
        if (doctor_fact(facts, "asks_for_keys")->number == 1)
            doctor_say(doctor, "key", "", "not needed for %s", doctor->tool->address);
        return;
    }
    if (stat(file, &info) == 0 && (info.st_mode & 077) != 0)
        doctor_say(doctor, "key", "chmod 600 that file",
                   "%s can be read by other users of this host", file);
    else
        doctor_say(doctor, "key", "", "%s is let in", file);
}

/* True: it answers. */
static bool doctor_broker(struct doctor *doctor)
{
    struct tool *tool = doctor->tool;
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *facts = NULL;
    int64_t asked_ms = tool_now_unix_ms(), told_ms;
    char said[MUSTER_ERROR_TEXT_MAX * 2] = "";
    enum muster_status status = MUSTER_E_BROKER;

    tool_hear(said, sizeof said);
    if (tool_connect(tool) == TOOL_DONE)
        status = muster_client_broker(tool->client, &facts, &err);
    tool_hear(NULL, 0);
    told_ms = tool_now_unix_ms();
    if (status == MUSTER_E_UNSUPPORTED) {
        doctor_say(doctor, "broker", "start `musterd`", "none runs here; %s is its database",
                   tool->address);
    } else if (status != MUSTER_OK) {
        doctor_say(doctor, "broker", "see `man musterd`", "%s", said[0] != '\0' ? said : err.text);
    } else {
        doctor_say(doctor, "broker", "",
                   "%s, musterd %s, %" PRId64 " job%s running, answers in %" PRId64 " ms",
                   tool->address, doctor_fact(facts, "version")->text,
                   doctor_fact(facts, "jobs_running")->number,
                   doctor_fact(facts, "jobs_running")->number == 1 ? "" : "s", told_ms - asked_ms);
        if (doctor_fact(facts, "database_trouble")->text[0] != '\0')
            doctor_say(doctor, "database", "make room on the broker's disk", "%s",
                       doctor_fact(facts, "database_trouble")->text);
        doctor_key(doctor, facts);
        doctor_clock(doctor, facts, asked_ms, told_ms);
        doctor_ports(doctor, facts);
    }
    muster_rows_destroy(&facts);
    return status == MUSTER_OK;
}

/* --- the job ---------------------------------------------------------------------------------- */

static bool doctor_identity(struct doctor *doctor, struct muster_identity *ret_identity)
{
    struct muster_identity identity = {0};
    struct muster_error err;
    const char *job = identity.job;

    if (muster_identity_read(&identity, sizeof identity, &err) != MUSTER_OK) {
        doctor_say(doctor, "identity", "see `man muster-environment`", "%s", err.text);
        return false;
    }
    *ret_identity = identity;
    if (strcmp(identity.launcher, "single") == 0)
        doctor_say(
            doctor, "identity", "",
            "no launcher started this: `muster run -n 4 -- PROGRAM` gives ranks their places");
    else if (job[0] == '\0')
        doctor_say(doctor, "identity", "set MUSTER_JOB, or start it by `muster run --job NAME`",
                   "rank %d of %d, by %s, of a job without a name", identity.rank,
                   identity.world_size, identity.launcher);
    else
        doctor_say(doctor, "identity", "", "rank %d of %d of job %s, by %s", identity.rank,
                   identity.world_size, job, identity.launcher);
    return true;
}

static void doctor_place(struct doctor *doctor, const struct muster_identity *identity)
{
    const char *told = getenv("MUSTER_CHECKPOINT_DIR");
    bool several = identity->local_size > 0 && identity->world_size > identity->local_size;

    if (told == NULL || told[0] == '\0')
        doctor_say(doctor, "directory", "",
                   "MUSTER_CHECKPOINT_DIR is not set, so the program has to name it");
    else
        doctor_directory(doctor, told, several);
}

/* Is the directory of a job that runs to be seen here, too? */
static void doctor_jobs(struct doctor *doctor)
{
    muster_rows_t *rows = NULL;
    size_t running = 0;

    if (muster_client_jobs(doctor->tool->client, NULL, &rows, NULL) != MUSTER_OK)
        return;
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_job_row *job = &muster_rows_jobs(rows)[i];

        if (strcmp(job->state, "running") != 0 || job->checkpoint_dir[0] != '/')
            continue;
        if (access(job->checkpoint_dir, F_OK) != 0 && running++ < 3)
            doctor_say(doctor, "jobs",
                       "mount it here, if ranks of that job are to run on this host",
                       "%s, which job %s writes to, is not there on this host", job->checkpoint_dir,
                       job->job);
    }
    muster_rows_destroy(&rows);
}

/* --- notices ---------------------------------------------------------------------------------- */

/* The cloud that this machine is in; "" = none that is known. */
static const char *doctor_cloud(void)
{
    static const char *const vendors[][2] = {{"Amazon EC2", "EC2"},
                                             {"Google", "Compute Engine"},
                                             {"Microsoft Corporation", "Azure"},
                                             {"Alibaba Cloud", "Alibaba"},
                                             {"Tencent Cloud", "Tencent"}};
    char vendor[64] = "";
    FILE *file = fopen("/sys/class/dmi/id/sys_vendor", "re");

    if (file == NULL)
        return "";
    if (fgets(vendor, sizeof vendor, file) == NULL)
        vendor[0] = '\0';
    fclose(file);
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
        if (strncmp(vendor, vendors[i][0], strlen(vendors[i][0])) == 0)
            return vendors[i][1];
    return "";
}

static void doctor_notices(struct doctor *doctor)
{
    const char *told = getenv("MUSTER_NOTICE_SOURCES"), *cloud = doctor_cloud();
    struct muster_error err = {.status = MUSTER_OK};
    struct source_list ignored;

    if (sources_parse(told, &ignored, &err) != MUSTER_OK ||
        sources_check_environment(&err) != MUSTER_OK)
        doctor_say(doctor, "notices", "correct the variable, see `man muster-notices`", "%s",
                   err.text);
    else if (told != NULL && told[0] != '\0')
        doctor_say(doctor, "notices", "", "SIGTERM, `muster notify`, and %s", told);
    else if (cloud[0] != '\0')
        doctor_say(doctor, "notices", "set MUSTER_NOTICE_SOURCES=auto",
                   "this machine belongs to %s, and nothing asks that cloud for notices", cloud);
    else
        doctor_say(doctor, "notices", "",
                   "SIGTERM and `muster notify`; `man muster-notices` has more sources");
}

/* --- the verb --------------------------------------------------------------------------------- */

static int doctor_print(struct doctor *doctor)
{
    struct tool *tool = doctor->tool;
    json_t *finding;
    size_t index;

    if (tool_json(tool)) {
        json_t *document = render_document();

        json_object_set(document, "findings", doctor->findings);
        return render_json(document, tool->out, false)
                   ? TOOL_DONE
                   : tool_fail(TOOL_NO, "no memory for the answer");
    }
    json_array_foreach(doctor->findings, index, finding)
    {
        const char *mend = json_string_value(json_object_get(finding, "mend"));

        fprintf(tool->out, "%-4s  %-9s  %s%s%s\n", mend[0] == '\0' ? "ok" : "MEND",
                json_string_value(json_object_get(finding, "what")),
                json_string_value(json_object_get(finding, "text")), mend[0] == '\0' ? "" : "; ",
                mend);
    }
    return TOOL_DONE;
}

int cmd_doctor(struct tool *tool)
{
    struct doctor doctor = {.tool = tool, .findings = json_array()};
    struct muster_identity identity = {.local_size = -1};
    int code;

    if (doctor.findings == NULL)
        return tool_fail(TOOL_NO, "no memory for the answer");
    doctor_say(&doctor, "version", "", "muster %s", MUSTER_VERSION);
    if (doctor_broker(&doctor))
        doctor_jobs(&doctor);
    doctor_identity(&doctor, &identity);
    doctor_place(&doctor, &identity);
    doctor_notices(&doctor);
    code = doctor_print(&doctor);
    json_decref(doctor.findings);
    return code == TOOL_DONE && doctor.wrong > 0 ? TOOL_NO : code;
}
