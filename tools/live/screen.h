/* screen - a whole terminal for a picture that is drawn again and again, and the keys pressed.
 * Owns: the terminal between screen_open and screen_close, which gives it back as it was.
 * Never: writes anything but text without control characters, and its own few sequences. */
#ifndef TOOLS_SCREEN_H
#define TOOLS_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum screen_key {
    SCREEN_NONE = 0, /* the time is over */
    SCREEN_RESIZED = 256,
    SCREEN_END, /* Ctrl-C, a signal, or nobody is there any more */
    SCREEN_UP,
    SCREEN_DOWN,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN,
    SCREEN_ESCAPE,
    SCREEN_ENTER /* else the byte of the key */
};

/* Returns TOOL_DONE, or says why this is no terminal to draw on. verb: for that text. */
int screen_open(const char *verb);
void screen_close(void); /* also if it was not opened */
void screen_size(int *ret_width, int *ret_height);
/* Waits for a key, at most until then. */
int screen_key(int64_t timeout_ms);
/* Was Ctrl-C pressed? For muster_client_set_interrupted. */
bool screen_is_over(void *unused);
/* Draws lines of text from the first on, each cut to the width. If there are more lines than fit,
 * the last one says how many are below. */
void screen_draw(const char *text, size_t first);

#endif
