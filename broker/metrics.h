/* metrics - a broker's metrics for Prometheus, at an address of their own (--metrics).
 * Owns: a listening socket, a thread that answers there, and the newest text.
 * Never: lets a scraper wait for the loop or the loop for a scraper. The loop writes a text when
 * one was asked for and a second has passed; a scraper that asks in between gets the last one.
 * Always: at most METRICS_CONNECTIONS_MAX connections, and each ends within METRICS_PATIENCE_MS. */
#ifndef BROKER_METRICS_H
#define BROKER_METRICS_H

#include "broker/self.h"

#define METRICS_CONNECTIONS_MAX 16
#define METRICS_PATIENCE_MS 2000
#define METRICS_FRESH_MS 1000
#define METRICS_JOBS_MAX 1000

struct metrics;

/* Listens at "HOST:PORT"; port 0: any free one. MUSTER_E_ARGUMENT: it is no such address ·
 * MUSTER_E_IO: nobody can listen there. */
enum muster_status metrics_open(const char *address, struct metrics **ret_metrics,
                                struct muster_error *err);
void metrics_close(struct metrics **metrics); /* also NULL */
/* "127.0.0.1:7790" */
const char *metrics_address(const struct metrics *metrics);
bool metrics_is_local(const struct metrics *metrics); /* no other host reaches it */

/* By the loop: is a new text asked for? */
bool metrics_is_due(struct metrics *metrics, int64_t now_boot_ms);
/* Writes it. */
void metrics_write(struct metrics *metrics, const struct self *self, int64_t now_boot_ms);

/* The text itself, in the OpenMetrics form (open) or the older one. Owned; NULL: no memory. */
char *metrics_text(const struct self *self, bool open);

#endif
