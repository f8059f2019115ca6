/* query_address - what can be told of a broker's address without speaking to it.
 * Connects to nothing: a broker sees none of it. */
#ifndef CLIENT_QUERY_ADDRESS_H
#define CLIENT_QUERY_ADDRESS_H

#include <muster/status.h>

#include <stdbool.h>
#include <stddef.h>

/* "tcp://" or "ipc://" is its beginning. */
bool query_address_is(const char *text);
/* One address, or several with commas between them. MUSTER_E_ARGUMENT: no broker can have one of
 * them, or they are no such list; the text says what is wrong with it. */
enum muster_status query_address_check(const char *brokers, struct muster_error *err);

#define ADDRESS_HOST_MAX 255
/* The host of tcp://HOST:PORT, without the brackets of IPv6, and where its port begins (NULL: it
 * has none). False: it is no such address, or no host can have this name. */
bool query_address_host(const char *address, char ret_host[ADDRESS_HOST_MAX + 1],
                        const char **ret_port);

#define ADDRESS_TROUBLE_MAX 512
/* Why nobody can be reached there: no such host, no such socket, permission denied. False: nothing
 * is known against it; then ret_text is "". Asks the resolver, which may take seconds. */
bool query_address_trouble(const char *address, char ret_text[ADDRESS_TROUBLE_MAX]);
#endif
