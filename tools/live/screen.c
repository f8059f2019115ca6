/* screen - see screen.h. The sequences are those that every terminal since the VT220 knows, and one
 * (2026: draw at once) that others leave alone. */
#include "tools/live/screen.h"

#include "tools/paint.h"
#include "tools/tool.h"

#include "node/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios screen_before;
static bool screen_opened;
static volatile sig_atomic_t screen_over, screen_resized;

static void screen_on_end(int number)
{
    (void)number;
    screen_over = 1;
}

static void screen_on_size(int number)
{
    (void)number;
    screen_resized = 1;
}

static void screen_say(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

int screen_open(const char *verb)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction on_end = {.sa_handler = screen_on_end};
    struct sigaction on_size = {.sa_handler = screen_on_size};
    const char *kind = getenv("TERM");
    struct termios raw;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        tcgetattr(STDIN_FILENO, &screen_before) != 0)
        return tool_fail(TOOL_USAGE,
                         "%s draws on a terminal, and this is none: for a script there is `muster "
                         "status --json`",
                         verb);
    if (kind == NULL || kind[0] == '\0' || strcmp(kind, "dumb") == 0)
        return tool_fail(TOOL_USAGE, "%s cannot draw on this terminal: TERM is \"%s\"", verb,
                         kind == NULL ? "" : kind);
    raw = screen_before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    raw.c_iflag &= (tcflag_t)~IXON;
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &on_end, NULL);
    sigaction(SIGWINCH, &on_size, NULL);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    screen_opened = true;
    screen_say("\033[?1049h\033[?25l");
    return TOOL_DONE;
}

void screen_close(void)
{
    if (!screen_opened)
        return;
    screen_opened = false;
    screen_say("\033[0m\033[?25h\033[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &screen_before);
}

void screen_size(int *ret_width, int *ret_height)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 1 || size.ws_row < 1)
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    *ret_width = size.ws_col;
    *ret_height = size.ws_row;
}

bool screen_is_over(void *unused)
{
    (void)unused;
    return screen_over != 0;
}

/* --- keys ------------------------------------------------------------------------------------- */

static char screen_pending[64]; /* bytes of keys that were pressed meanwhile */
static size_t screen_pending_size;

static int screen_drop(size_t bytes, int key)
{
    screen_pending_size -= bytes;
    memmove(screen_pending, screen_pending + bytes, screen_pending_size);
    return key;
}

/* The first key of these bytes; all bytes of one key come together. */
static int screen_take(void)
{
    static const struct {
        const char *bytes;
        int key;
    } keys[] = {
        {"\033[A", SCREEN_UP},     {"\033OA", SCREEN_UP},       {"\033[B", SCREEN_DOWN},
        {"\033OB", SCREEN_DOWN},   {"\033[5~", SCREEN_PAGE_UP}, {"\033[6~", SCREEN_PAGE_DOWN},
        {"\033[D", SCREEN_ESCAPE}, {"\033OD", SCREEN_ESCAPE},   {"\033[C", SCREEN_ENTER},
        {"\033OC", SCREEN_ENTER},  {"\r", SCREEN_ENTER},        {"\n", SCREEN_ENTER},
        {"k", SCREEN_UP},          {"j", SCREEN_DOWN},          {"\003", SCREEN_END}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t length = strlen(keys[i].bytes);

        if (screen_pending_size >= length && memcmp(screen_pending, keys[i].bytes, length) == 0)
            return screen_drop(length, keys[i].key);
    }
    if (screen_pending[0] != '\033')
        return screen_drop(1, (unsigned char)screen_pending[0]);
    if (screen_pending_size > 1 && (screen_pending[1] == '[' || screen_pending[1] == 'O'))
        return screen_drop(screen_pending_size, SCREEN_NONE); /* a key that means nothing here */
    return screen_drop(1, SCREEN_ESCAPE);
}

static int screen_read(void)
{
    ssize_t got = read(STDIN_FILENO, screen_pending, sizeof screen_pending);

    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? SCREEN_NONE : SCREEN_END;
    if (got == 0)
        return SCREEN_END;
    screen_pending_size = (size_t)got;
    return screen_take();
}

int screen_key(int64_t timeout_ms)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + timeout_ms;

    for (;;) {
        struct pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN};
        int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
        int key = SCREEN_NONE;

        if (screen_over != 0)
            return SCREEN_END;
        if (screen_resized != 0) {
            screen_resized = 0;
            return SCREEN_RESIZED;
        }
        if (screen_pending_size > 0)
            key = screen_take();
        else if (poll(&terminal, 1, left_ms < 0 ? 0 : (int)left_ms) > 0)
            key = screen_read();
        if (key != SCREEN_NONE || left_ms <= 0)
            return key;
    }
}

/* --- drawing ---------------------------------------------------------------------------------- */

static size_t screen_lines(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

static const char *screen_skip(const char *text, size_t lines)
{
    while (lines > 0 && *text != '\0')
        lines -= *text++ == '\n';
    return text;
}

void screen_draw(const char *text, size_t first)
{
    int width, height;
    size_t lines, shown;

    screen_size(&width, &height);
    text = screen_skip(text, first);
    lines = screen_lines(text);
    shown = lines > (size_t)height ? (size_t)height - 1 : lines;
    fputs("\033[?2026h\033[H", stdout);
    for (size_t i = 0; i < shown; i++) {
        size_t length = strcspn(text, "\n");

        paint_line(stdout, text, length, width);
        fputs(i + 1 < (size_t)height ? "\033[K\r\n" : "\033[K", stdout);
        text += length + 1;
    }
    if (lines > shown)
        printf("... %zu more lines\033[K", lines - shown);
    fputs("\033[J\033[?2026l", stdout);
    fflush(stdout);
}
