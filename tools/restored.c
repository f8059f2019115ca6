/* restored - see restored.h. */
#include "tools/restored.h"

#include "schema/error.h"

#include <string.h>

/* The launch ended before its first step, because a rank could not restore the announced
 * checkpoint. */
static bool restored_failed(const struct muster_generation_row *generation)
{
    return generation->end_status == MUSTER_E_RESTORE && generation->started_unix_ms == 0;
}

bool restored_nothing_begun(const struct muster_generation_row *generation)
{
    return strncmp(generation->state, "end", 3) == 0 && generation->started_unix_ms == 0 &&
           generation->opened_unix_ms != 0; /* of one that was found on disk nothing is known */
}

const struct muster_generation_row *restored_in_the_way(const muster_rows_t *generations,
                                                        size_t count)
{
    const struct muster_generation_row *generation = muster_rows_generations(generations);

    for (size_t i = count; i > 0 && restored_nothing_begun(&generation[i - 1]); i--)
        if (restored_failed(&generation[i - 1]))
            return &generation[i - 1];
    return NULL;
}

const char *restored_text(const struct muster_generation_row *failed)
{
    return failed->error_text[0] != '\0' ? failed->error_text : failed->end_text;
}

/* "checkpoint PATH was not restored at rank N (MUSTER_E_...): ...", as the rank wrote; "": it is
 * none of these. */
static const char *restored_code_of(const char *text)
{
    static const char words[] = " was not restored at rank ";
    const char *at = strstr(text, words);

    if (at == NULL)
        return "";
    at += strlen(words);
    at += strspn(at, "0123456789");
    return strncmp(at, " (MUSTER_", 9) == 0 ? at + 2 : "";
}

bool restored_does_not_fit(const struct muster_generation_row *failed)
{
    static const enum muster_status damages[] = {MUSTER_E_CORRUPT, MUSTER_E_IO, MUSTER_E_NOT_FOUND};
    const char *text = failed->error_text; /* has room for a rank's whole words: its end is there */
    const char *code = restored_code_of(text);

    if (code[0] == '\0' || strstr(text, ERROR_SAYS_DAMAGED) != NULL ||
        strstr(text, ERROR_SAYS_NONE_OLDER) != NULL)
        return false;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const char *name = muster_status_name(damages[i]);

        if (strncmp(code, name, strlen(name)) == 0 && code[strlen(name)] == ')')
            return false;
    }
    return true;
}
