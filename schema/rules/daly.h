/* daly - how far apart saves should be, from what one costs and how often the job is interrupted.
 * Pure. */
#ifndef SCHEMA_DALY_H
#define SCHEMA_DALY_H

#include <stdint.h>

/* With M = between_ms, C = cost_ms: sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) between
 * saves, M if C >= 2M. */
int64_t daly_interval_ms(int64_t cost_ms, int64_t between_ms);

#endif
