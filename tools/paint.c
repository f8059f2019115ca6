/* paint - see paint.h. */
#include "tools/paint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool paint_on;

static const struct {
    enum paint_hue hue;
    const char *mark, *sequence;
} paint_hues[] = {
    {PAINT_PLAIN, "\001", "\033[0m"},  {PAINT_GOOD, "\002", "\033[32m"},
    {PAINT_BUSY, "\003", "\033[36m"},  {PAINT_WARN, "\004", "\033[33m"},
    {PAINT_BAD, "\005", "\033[1;31m"}, {PAINT_DIM, "\016", "\033[2m"},
    {PAINT_TITLE, "\017", "\033[1m"},  {PAINT_CHOSEN, "\020", "\033[7m"},
};
#define PAINT_HUES (sizeof paint_hues / sizeof *paint_hues)

void paint_begin(void)
{
    const char *no = getenv("NO_COLOR"), *kind = getenv("TERM");

    paint_on = isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0') && kind != NULL &&
               kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

enum paint_hue paint_of_state(const char *word)
{
    static const struct {
        const char *word;
        enum paint_hue hue;
    } words[] = {
        {"running", PAINT_GOOD},   {"restored", PAINT_GOOD}, {"committed", PAINT_GOOD},
        {"finished", PAINT_GOOD},  {"done", PAINT_GOOD},     {"joining", PAINT_BUSY},
        {"joined", PAINT_BUSY},    {"ending", PAINT_BUSY},   {"freezing", PAINT_BUSY},
        {"decided", PAINT_BUSY},   {"writing", PAINT_BUSY},  {"leased", PAINT_BUSY},
        {"preempted", PAINT_WARN}, {"unchanged", PAINT_DIM}, {"left", PAINT_DIM},
        {"superseded", PAINT_DIM}, {"deleted", PAINT_DIM},   {"preempted, not saved", PAINT_BAD},
        {"lost", PAINT_BAD},       {"fenced", PAINT_BAD},    {"failed", PAINT_BAD},
        {"aborted", PAINT_BAD},    {"unheard", PAINT_WARN},
    };
    size_t length = strcspn(word, ":");

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0)
            return words[i].hue;
    return 0;
}

const char *paint(enum paint_hue hue)
{
    for (size_t i = 0; paint_on && i < PAINT_HUES; i++)
        if (paint_hues[i].hue == hue)
            return paint_hues[i].mark;
    return "";
}

static const char *paint_sequence(char byte)
{
    for (size_t i = 0; paint_on && i < PAINT_HUES; i++)
        if (paint_hues[i].mark[0] == byte)
            return paint_hues[i].sequence;
    return NULL;
}

static bool paint_is_control(char byte)
{
    return (byte >= 0 && byte < ' ' && byte != '\n' && byte != '\t') || byte == 127;
}

/* *open: a colour other than the plain one. */
static void paint_byte(FILE *out, char byte, bool *open)
{
    const char *sequence = paint_sequence(byte);

    if (byte == '\n' && *open)
        fputs("\033[0m", out);
    if (sequence != NULL)
        fputs(sequence, out);
    else
        fputc(paint_is_control(byte) ? '?' : byte, out);
    if (sequence != NULL || byte == '\n')
        *open = sequence != NULL && byte != PAINT_PLAIN;
}

/* How many bytes from here on go out as they are. No mark of a colour is one of them. */
static size_t paint_plain_run(const char *text, size_t size, bool open)
{
    size_t run = 0;

    while (run < size && !paint_is_control(text[run]) && !(open && text[run] == '\n'))
        run++;
    return run;
}

void paint_text(FILE *out, const char *text, size_t size)
{
    bool open = false;

    while (size > 0) {
        size_t run = paint_plain_run(text, size, open);

        if (run > 0)
            fwrite(text, 1, run, out);
        else
            paint_byte(out, text[run++], &open);
        text += run;
        size -= run;
    }
    if (open)
        fputs("\033[0m", out);
}

static bool paint_is_wide(char byte) /* it begins a character that is seen */
{
    return ((unsigned char)byte & 0xc0) != 0x80 && paint_sequence(byte) == NULL;
}

void paint_line(FILE *out, const char *text, size_t size, int width)
{
    bool open = false;

    for (size_t i = 0; i < size; i++) {
        width -= paint_is_wide(text[i]);
        if (width < 0)
            break;
        paint_byte(out, (char)(text[i] == '\t' ? ' ' : text[i]), &open);
    }
    if (open)
        fputs("\033[0m", out);
}
