/* paint - colours on a terminal.
 * A text carries them as marks, single control bytes, until it is written. So its width can be
 * counted, and no byte that came from elsewhere commands the terminal. A forged mark only colours
 * the rest of its line. */
#ifndef TOOLS_PAINT_H
#define TOOLS_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum paint_hue { /* as bytes; 0: none */
                 PAINT_PLAIN = 1,
                 PAINT_GOOD,
                 PAINT_BUSY,
                 PAINT_WARN,
                 PAINT_BAD,
                 PAINT_DIM = 14,
                 PAINT_TITLE,
                 PAINT_CHOSEN
};

/* Colours are on if standard output is a terminal that knows them and NO_COLOR is not set. */
void paint_begin(void);
/* Of a word of state: "running", "lost: preempted", "aborted". */
enum paint_hue paint_of_state(const char *word);
/* The mark, "" if colours are off or the hue is 0. */
const char *paint(enum paint_hue hue);
/* Writes text: marks as colours, any other control character but \n and \t as '?'. */
void paint_text(FILE *out, const char *text, size_t size);
/* One line of it, cut to that many characters. */
void paint_line(FILE *out, const char *text, size_t size, int width);

#endif
