/* query_door - does the broker at an address ask for a key, and is that why it does not answer?
 * Connects, reads the greeting that each ZeroMQ peer sends (rfc.zeromq.org/spec/23), and leaves.
 * Blocks up to DOOR_WAIT_MS. */
#ifndef CLIENT_QUERY_DOOR_H
#define CLIENT_QUERY_DOOR_H

#include <muster/status.h>

#include <stdbool.h>

#define DOOR_WAIT_MS 300 /* nothing breaks it off: Ctrl-C is to be heard within a second */
#define DOOR_TEXT_MAX 1024

enum query_door {
    DOOR_OPEN,    /* that is not why; or nobody greets there */
    DOOR_PERHAPS, /* it asks for a key and we have one: it stands still, or does not accept the key
                   */
    DOOR_SHUT     /* a key is missing, or one too many */
};

/* Tells why a broker did not answer, unless it can be reached. */
enum query_door query_door_look(const char *address, char ret_text[DOOR_TEXT_MAX]);

#define DOORS_TEXT_MAX 3072 /* the rest of an error's text is for what was asked */
/* Of several brokers of which none answered: "tcp://a:7700 (Connection refused), tcp://b:7700 (no
 * such host: b)". True: each is shut. Blocks twice DOOR_WAIT_MS for each. */
bool query_door_tried(const char *brokers, char ret_text[DOORS_TEXT_MAX]);

/* For an err (may be NULL) that says that no broker answered: puts before its text why nobody can
 * be reached, or makes it MUSTER_E_AUTH if a key is the reason. With several addresses it appends
 * the reason of each. Returns its status. */
enum muster_status query_door_explain(const char *address, enum muster_status status,
                                      struct muster_error *err);

#endif
