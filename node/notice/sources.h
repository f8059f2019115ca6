/* sources - the list of sources that a user asks for, and which there are.
 * "signal,file:/path,command:test -e /x && echo,ec2,auto": names, some with an argument behind a
 * colon; "\," is a comma of an argument. Signals and the user's callback have options of their own
 * and are never switched off by a list; to name them is allowed. */
#ifndef NODE_NOTICE_SOURCES_H
#define NODE_NOTICE_SOURCES_H

#include "node/notice/providers/provider.h"

struct source_wish {
    char name[SOURCE_NAME_MAX + 1];
    char argument[SOURCE_ARGUMENT_MAX + 1];
};
struct source_list {
    struct source_wish items[SOURCES_MAX];
    size_t count;
};

/* NULL or "": an empty list. E_ARGUMENT with what is wrong and what there is. Pure. */
enum muster_status sources_parse(const char *text, struct source_list *ret_list,
                                 struct muster_error *err);

/* A source by its number (NULL: after the last), or by its name (NULL: none). */
const struct provider *sources_provider(size_t index);
const struct provider *sources_provider_named(const char *name);
/* Those that are no provider: NULL: none of that name. */
const struct source_ops *sources_ops(const char *name);
const char *sources_ops_name(const struct source_ops *ops); /* of one that is there; static */

/* MUSTER_<NAME>_ENDPOINT, the platform's own variables (where "http://" may be missing), "". A text
 * that does not fit becomes one that is no address. Off: the platform's own switch says so. Reads
 * the environment. */
void sources_endpoint(const struct provider *provider, char *ret_endpoint, size_t size);
bool sources_is_off(const struct provider *provider);
/* It may tell its service to go ahead: its variable says so. Reads the environment. */
bool sources_acknowledges(const struct provider *provider);
/* MUSTER_E_ARGUMENT: such a variable says neither yes nor no. */
enum muster_status sources_check_environment(struct muster_error *err);

#endif
