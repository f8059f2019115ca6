/* html - text that becomes a page: all that comes from elsewhere goes through html_escaped. */
#include "tools/web/web.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *html_entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void html_escaped(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const char *entity = html_entity(*text);

        if (entity != NULL)
            fputs(entity, out);
        else if ((*text >= 0 && *text < ' ' && *text != '\n' && *text != '\t') || *text == 127)
            fputc('?', out);
        else
            fputc(*text, out);
    }
}

void html(FILE *out, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    for (; *format != '\0'; format++) {
        if (*format != '%') {
            fputc(*format, out);
            continue;
        }
        if (*++format == 's')
            html_escaped(out, va_arg(list, const char *));
        else if (*format == '%')
            fputc('%', out);
        else
            abort(); /* there is no other conversion */
    }
    va_end(list);
}

/* A name that no program could have given, but a database may hold, is one part of a path too. */
void html_job_path(FILE *out, const char *before, const char *job, const char *behind)
{
    fputs(before, out);
    for (; *job != '\0'; job++) {
        bool plain = (*job >= 'a' && *job <= 'z') || (*job >= 'A' && *job <= 'Z') ||
                     (*job >= '0' && *job <= '9') || *job == '.' || *job == '_' || *job == '-';

        if (plain)
            fputc(*job, out);
        else
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*job);
    }
    fputs(behind, out); /* of ours */
}

/* --- short texts ------------------------------------------------------------------------------ */

struct shown html_number(int64_t number)
{
    struct shown plain = render_number(number), shown = {"\u2013"};
    size_t length = strlen(plain.text), to = 0;

    if (number < 0)
        return shown;
    for (size_t i = 0; i < length && to + 2 < sizeof shown.text; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            shown.text[to++] = ',';
        shown.text[to++] = plain.text[i];
    }
    shown.text[to] = '\0';
    return shown;
}

struct shown html_percent(double part, double whole)
{
    struct shown shown;
    double percent = whole <= 0 ? 0 : 100 * part / whole;

    snprintf(shown.text, sizeof shown.text, "%.2f%%",
             percent < 0 ? 0 : (percent > 100 ? 100 : percent));
    return shown;
}

void html_until(struct tool *tool, int64_t unix_ms)
{
    int64_t left_ms = unix_ms > tool->now_unix_ms ? unix_ms - tool->now_unix_ms : 0;

    fprintf(tool->out, "<time data-until=\"%" PRId64 "\">in %s</time>", unix_ms,
            render_duration(left_ms).text);
}

void html_age(struct tool *tool, int64_t unix_ms)
{
    char number[24];

    if (unix_ms <= 0) {
        fputs("&ndash;", tool->out);
        return;
    }
    snprintf(number, sizeof number, "%" PRId64, unix_ms);
    html(tool->out, "<time data-age=\"%s\" title=\"%s\">%s</time>", number,
         render_stamp(unix_ms).text, render_age(unix_ms, tool->now_unix_ms).text);
}

void html_clock(struct tool *tool, int64_t unix_ms)
{
    if (unix_ms <= 0)
        fputs("&ndash;", tool->out);
    else
        html(tool->out, "<time title=\"%s\">%s</time>", render_stamp(unix_ms).text,
             render_clock(unix_ms, tool->now_unix_ms).text);
}

/* Which colour a word of state has. */
static const char *html_tone(const char *word)
{
    static const struct {
        const char *word, *tone;
    } tones[] = {
        {"running", "go"},    {"restored", "go"},    {"committed", "good"},
        {"finished", "good"}, {"failed", "bad"},     {"lost", "bad"},
        {"aborted", "bad"},   {"stuck", "bad"},      {"preempted, not saved", "bad"},
        {"fenced", "bad"},    {"freezing", "busy"},  {"decided", "busy"},
        {"writing", "busy"},  {"ending", "busy"},    {"joining", "busy"},
        {"joined", "busy"},   {"active", "busy"},    {"silent", "bad"},
        {"training", "go"},   {"in a save", "busy"}, {"not there", "busy"},
        {"unheard", "busy"},
    };

    for (size_t i = 0; i < sizeof tones / sizeof *tones; i++)
        if (strcmp(tones[i].word, word) == 0)
            return tones[i].tone;
    return "calm";
}

void html_state(FILE *out, const char *word)
{
    html(out, "<span class=\"state %s\">%s</span>", html_tone(word), word);
}

/* --- lists ------------------------------------------------------------------------------------ */

void html_page_rows(int64_t page, size_t count, size_t *ret_first, size_t *ret_end)
{
    size_t first = (size_t)(page - 1) * WEB_PAGE;

    *ret_first = first > count ? count : first;
    *ret_end = count - *ret_first > WEB_PAGE ? *ret_first + WEB_PAGE : count;
}

void html_pages(FILE *out, int64_t page, size_t count)
{
    int64_t last = (int64_t)((count + WEB_PAGE - 1) / WEB_PAGE);
    size_t first, end;

    html_page_rows(page, count, &first, &end);
    html(out, "<nav class=\"pages\" aria-label=\"Pages\"><span>%s to %s of %s</span>",
         html_number(count == 0 ? 0 : (int64_t)first + 1).text, html_number((int64_t)end).text,
         html_number((int64_t)count).text);
    if (page > 1)
        html(out, " <a rel=\"prev\" href=\"?page=%s\">&larr; previous</a>",
             render_number(page - 1 > last ? last : page - 1).text);
    if (page < last)
        html(out, " <a rel=\"next\" href=\"?page=%s\">next &rarr;</a>",
             render_number(page + 1).text);
    fputs("</nav>\n", out);
}

/* --- the frame of each page ------------------------------------------------------------------- */

static const char html_start[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<link rel=\"icon\" href=\"/icon.svg\">\n<link rel=\"stylesheet\" href=\"/web.css\">\n"
    "<script src=\"/web.js\" defer></script>\n";

void html_head(struct tool *tool, const char *title, const char *job, const char *view)
{
    FILE *out = tool->out;
    char now[24];

    snprintf(now, sizeof now, "%" PRId64, tool->now_unix_ms);
    fputs(html_start, out);
    html(out, "<title>%s &middot; muster</title>\n</head>\n<body data-now=\"%s\"", title, now);
    if (job != NULL && job[0] != '\0') {
        html_job_path(out, " data-stream=\"/api/v1/jobs/", job, "/stream");
        html_job_path(out, "\" data-heat=\"/api/v1/jobs/", job, "/heat");
        fputc('"', out);
    } else if (view != NULL)
        fputs(" data-stream=\"/api/v1/stream\"", out);
    fputs(">\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>"
          "<nav aria-label=\"Where you are\"><a class=\"brand\" href=\"/\">muster</a>",
          out);
    if (job != NULL && job[0] != '\0') {
        html_job_path(out, "<span aria-hidden=\"true\">/</span><a href=\"/jobs/", job, "");
        html(out, "\">%s</a>", job);
    }
    if (view != NULL && view[0] != '\0')
        html(out, "<span aria-hidden=\"true\">/</span><span>%s</span>", view);
    fputs("</nav><span id=\"link\" role=\"status\" hidden></span></header>\n"
          "<div id=\"trouble\" class=\"notice bad\" role=\"alert\" hidden></div>\n"
          "<main id=\"main\" tabindex=\"-1\">\n",
          out);
}

void html_foot(struct tool *tool)
{
    html(tool->out, "</main>\n<footer>Times are %s. <span class=\"place\">%s</span></footer>\n",
         render_zone(tool->now_unix_ms).text, tool->address);
    fputs("</body>\n</html>\n", tool->out);
}
