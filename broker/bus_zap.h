/* bus_zap - who may connect: answers libzmq's questions about clients' keys
 * (rfc.zeromq.org/spec/27). Owns: the socket at which libzmq asks. The broker's loop serves it, so
 * nobody is let in while the loop does not run; ZMQ_ZAP_ENFORCE_DOMAIN refuses everybody while the
 * socket is not there. Never: lets in a key that is not on the list now. One thread. */
#ifndef BROKER_BUS_ZAP_H
#define BROKER_BUS_ZAP_H

#include "broker/bus_keys.h"

#include <stdbool.h>

struct bus_zap;

/* Before the sockets that ask are bound. The keys are borrowed. */
enum muster_status bus_zap_open(void *context, const struct bus_keys *keys,
                                struct bus_zap **ret_zap, struct muster_error *err);
void bus_zap_close(struct bus_zap **zap); /* NULL-safe */

/* A client's key is asked for at this socket: no connection over it without one. */
bool bus_zap_guard(const struct bus_zap *zap, void *socket, struct muster_error *err);

int bus_zap_fd(const struct bus_zap *zap); /* readable when there may be a question */
/* Answers all questions without waiting. True: there was one. */
bool bus_zap_serve(struct bus_zap *zap, int64_t now_unix_ms);

uint64_t bus_zap_refused(const struct bus_zap *zap); /* connections */

#endif
