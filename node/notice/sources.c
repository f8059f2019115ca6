/* sources - see sources.h. */
#include "node/notice/sources.h"

#include "node/notice/command.h"
#include "node/notice/file.h"
#include "node/notice/providers/alibaba.h"
#include "node/notice/providers/azure.h"
#include "node/notice/providers/ec2.h"
#include "node/notice/providers/gce.h"
#include "node/notice/providers/slurm.h"
#include "node/notice/providers/tencent.h"
#include "schema/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct provider *const providers[] = {&provider_ec2, &provider_gce, &provider_azure,
                                                   &provider_alibaba, &provider_tencent};
static const struct {
    const char *name;
    const struct source_ops *ops; /* NULL: handled by watch itself */
    bool argument;
} others[] = {{"signal", NULL, false},         {"callback", NULL, false},
              {"auto", NULL, false},           {"file", &file_ops, true},
              {"command", &command_ops, true}, {"slurm", &slurm_ops, false}};

const struct provider *sources_provider(size_t index)
{
    return index < sizeof providers / sizeof *providers ? providers[index] : NULL;
}

const struct provider *sources_provider_named(const char *name)
{
    for (size_t i = 0; sources_provider(i) != NULL; i++)
        if (strcmp(sources_provider(i)->name, name) == 0)
            return sources_provider(i);
    return NULL;
}

const struct source_ops *sources_ops(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].ops;
    return NULL;
}

const char *sources_ops_name(const struct source_ops *ops)
{
    size_t i = 0;

    while (others[i].ops != ops)
        i++;
    return others[i].name;
}

static enum muster_status sources_unknown(const char *name, struct muster_error *err)
{
    char all[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s, ", others[i].name,
                                 others[i].argument ? ":ARGUMENT" : "");
    for (size_t i = 0; sources_provider(i) != NULL; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", sources_provider(i)->name,
                                 sources_provider(i + 1) != NULL ? ", " : "");
    return error_set(err, MUSTER_E_ARGUMENT, "\"%.60s\" is no notice source; there are: %s", name,
                     all);
}

static enum muster_status sources_check(const struct source_wish *wish, struct muster_error *err)
{
    if (sources_provider_named(wish->name) != NULL)
        return MUSTER_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(others[i].name, wish->name) != 0)
            continue;
        if (others[i].argument && wish->argument[0] == '\0')
            return error_set(err, MUSTER_E_ARGUMENT, "notice source %s needs an argument: %s:...",
                             wish->name, wish->name);
        return MUSTER_OK;
    }
    return sources_unknown(wish->name, err);
}

/* One element; `\,` is a comma. False: it does not fit. */
static bool sources_read_one(const char **at, struct source_wish *wish)
{
    bool argument = false;
    size_t name = 0, used = 0;

    memset(wish, 0, sizeof *wish);
    *at += strspn(*at, " ");
    for (; **at != '\0' && **at != ','; (*at)++) {
        if (**at == '\\' && (*at)[1] == ',')
            (*at)++;
        else if (**at == ':' && !argument) {
            argument = true;
            continue;
        }
        if (argument ? used == SOURCE_ARGUMENT_MAX : name == SOURCE_NAME_MAX)
            return false;
        if (argument)
            wish->argument[used++] = **at;
        else
            wish->name[name++] = **at;
    }
    while (name > 0 && wish->name[name - 1] == ' ')
        wish->name[--name] = '\0';
    return true;
}

enum muster_status sources_parse(const char *text, struct source_list *ret_list,
                                 struct muster_error *err)
{
    struct source_wish wish;
    enum muster_status status;

    memset(ret_list, 0, sizeof *ret_list);
    for (const char *at = text != NULL ? text : ""; *at != '\0';) {
        if (!sources_read_one(&at, &wish))
            return error_set(err, MUSTER_E_ARGUMENT,
                             "a name in the list of notice sources is longer than %d bytes, or an "
                             "argument than %d",
                             SOURCE_NAME_MAX, SOURCE_ARGUMENT_MAX);
        if (*at == ',')
            at++;
        if (wish.name[0] == '\0' && wish.argument[0] == '\0')
            continue;
        status = sources_check(&wish, err);
        if (status != MUSTER_OK)
            return status;
        if (ret_list->count == SOURCES_MAX)
            return error_set(err, MUSTER_E_ARGUMENT, "more than %d notice sources; name fewer",
                             SOURCES_MAX);
        ret_list->items[ret_list->count++] = wish;
    }
    return MUSTER_OK;
}

static const char *sources_environment(const char *name)
{
    const char *value = name != NULL ? getenv(name) : NULL;

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static void sources_own_variable(const struct provider *provider, char name[64])
{
    size_t used = (size_t)snprintf(name, 64, "MUSTER_");

    for (const char *c = provider->name; *c != '\0' && used < 48; c++)
        name[used++] = (char)toupper((unsigned char)*c);
    memcpy(name + used, "_ENDPOINT", sizeof "_ENDPOINT");
}

void sources_endpoint(const struct provider *provider, char *ret_endpoint, size_t size)
{
    char name[64];
    const char *value, *scheme = "";
    int length;

    sources_own_variable(provider, name);
    value = sources_environment(name);
    for (size_t i = 0; value == NULL && i < 2; i++) {
        value = sources_environment(provider->endpoint_environment[i]);
        scheme = value != NULL && strstr(value, "://") == NULL ? "http://" : "";
    }
    length = snprintf(ret_endpoint, size, "%s%s", scheme, value != NULL ? value : "");
    if (length < 0 || (size_t)length >= size)
        snprintf(ret_endpoint, size, "an address of more than %zu bytes", size - 1);
}

bool sources_is_off(const struct provider *provider)
{
    const char *value = sources_environment(provider->disabled_environment);

    return value != NULL && strcasecmp(value, "true") == 0;
}

static bool sources_is_yes(const char *value)
{
    return strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0;
}

bool sources_acknowledges(const struct provider *provider)
{
    const char *value = sources_environment(provider->acknowledge_environment);

    return value != NULL && sources_is_yes(value);
}

enum muster_status sources_check_environment(struct muster_error *err)
{
    for (size_t i = 0; sources_provider(i) != NULL; i++) {
        const char *name = sources_provider(i)->acknowledge_environment;
        const char *value = sources_environment(name);

        if (value != NULL && !sources_is_yes(value) && strcmp(value, "0") != 0 &&
            strcasecmp(value, "false") != 0)
            return error_set(err, MUSTER_E_ARGUMENT, "%s is \"%.40s\"; give 0 or 1", name, value);
    }
    return MUSTER_OK;
}
