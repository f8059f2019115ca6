/* times - the dates of metadata services. Pure: no time zone of the machine, no locale, no clock */
#ifndef NODE_NOTICE_TIMES_H
#define NODE_NOTICE_TIMES_H

#include "node/notice/base/source.h"

/* All take the text without spaces around it and answer in Unix milliseconds. False: none of that
 * form, or no date that exists. */
/* "2020-04-24T17:11:44Z", with a fraction, with "+02:00" */
bool times_rfc3339(const char *text, int64_t *ret_unix_ms);
/* "Mon, 11 Apr 2026 22:26:58 GMT", "21 Jan 2019 09:00:43 GMT", "1 Jan ...": week day and its sense
 * optional */
bool times_rfc1123(const char *text, int64_t *ret_unix_ms);
/* "2018-08-18 12:05:33", in a zone that is this many seconds ahead of UTC */
bool times_plain(const char *text, int64_t ahead_s, int64_t *ret_unix_ms);

/* A wall clock's time as time of this boot. A time that has passed becomes now; one further ahead
 * than longest_ms becomes that. */
int64_t times_deadline(const struct notice_now *now, int64_t unix_ms, int64_t longest_ms);

#endif
