/* ledger_pending - what a ledger holds of one source. */
#ifndef TESTS_SUPPORT_LEDGER_PENDING_H
#define TESTS_SUPPORT_LEDGER_PENDING_H

#include "node/notice/ledger.h"

#include <string.h>

/* Is an end announced by this source and not withdrawn? */
static inline bool ledger_pending(const struct ledger *ledger, const char *source)
{
    for (size_t i = 0; i < ledger->count; i++)
        if (strcmp(ledger->entries[i].source, source) == 0 && ledger->entries[i].last != 0 &&
            wire_notice_ends(ledger->entries[i].item.kind))
            return true;
    return false;
}

#endif
