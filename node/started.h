/* started - when this process began. With it a broker tells a late rank from one of the next
 * launch. Reads /proc/self/stat. */
#ifndef NODE_STARTED_H
#define NODE_STARTED_H

#include <stdint.h>

/* In boot time, for the first node of this process. 0: not known, or this process has asked before:
 * its second node may be of a later launch than the process's age tells. */
int64_t started_first_node_boot_ms(void);

/* The same out of the text of a stat file; `ticks` a second. 0: it cannot be read. */
int64_t started_parse_ms(const char *stat, long ticks);

#endif
