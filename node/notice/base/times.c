/* times - see times.h. */
#include "node/notice/base/times.h"

#include <string.h>

struct reader {
    const char *at;
    bool bad;
};

static int64_t times_number(struct reader *r, int digits_min, int digits_max)
{
    int64_t value = 0;
    int digits = 0;

    while (digits < digits_max && *r->at >= '0' && *r->at <= '9') {
        value = value * 10 + (*r->at++ - '0');
        digits++;
    }
    if (digits < digits_min)
        r->bad = true;
    return value;
}

static void times_expect(struct reader *r, const char *any_of)
{
    if (*r->at != '\0' && strchr(any_of, *r->at) != NULL)
        r->at++;
    else
        r->bad = true;
}

static bool times_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days since 1970-01-01 of a day that exists; -1: it does not. Years 1970 to 9999. */
static int64_t times_days(int64_t year, int64_t month, int64_t day)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    int64_t length;

    if (year < 1970 || year > 9999 || month < 1 || month > 12)
        return -1;
    length = before[month] - before[month - 1] + (month == 2 && times_leap(year) ? 1 : 0);
    if (day < 1 || day > length)
        return -1;
    return (year - 1970) * 365 + (year - 1969) / 4 - (year - 1901) / 100 + (year - 1601) / 400 +
           before[month - 1] + (month > 2 && times_leap(year) ? 1 : 0) + day - 1;
}

static int64_t times_clock_s(struct reader *r)
{
    int64_t hour, minute, second;

    hour = times_number(r, 2, 2);
    times_expect(r, ":");
    minute = times_number(r, 2, 2);
    times_expect(r, ":");
    second = times_number(r, 2, 2);
    if (hour > 23 || minute > 59 || second > 60)
        r->bad = true;
    return hour * 3600 + minute * 60 + second;
}

static int64_t times_fraction_ms(struct reader *r)
{
    int64_t ms = 0, weight = 100;

    if (*r->at != '.')
        return 0;
    r->at++;
    if (*r->at < '0' || *r->at > '9')
        r->bad = true;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++, weight /= 10)
        ms += (*r->at - '0') * weight;
    return ms;
}

static int64_t times_zone_s(struct reader *r)
{
    int64_t sign, hours, minutes;

    if (*r->at == 'Z' || *r->at == 'z') {
        r->at++;
        return 0;
    }
    sign = *r->at == '-' ? -1 : 1;
    times_expect(r, "+-");
    hours = times_number(r, 2, 2);
    times_expect(r, ":");
    minutes = times_number(r, 2, 2);
    if (hours > 23 || minutes > 59)
        r->bad = true;
    return sign * (hours * 3600 + minutes * 60);
}

static bool times_finish(const struct reader *r, int64_t day, int64_t seconds, int64_t ms,
                         int64_t *ret_unix_ms)
{
    if (r->bad || *r->at != '\0' || day < 0)
        return false;
    *ret_unix_ms = (day * 86400 + seconds) * 1000 + ms;
    return true;
}

static int64_t times_date_days(struct reader *r)
{
    int64_t year, month;

    year = times_number(r, 4, 4);
    times_expect(r, "-");
    month = times_number(r, 2, 2);
    times_expect(r, "-");
    return times_days(year, month, times_number(r, 2, 2));
}

bool times_rfc3339(const char *text, int64_t *ret_unix_ms)
{
    struct reader r = {.at = text};
    int64_t day, seconds, ms;

    day = times_date_days(&r);
    times_expect(&r, "Tt ");
    seconds = times_clock_s(&r);
    ms = times_fraction_ms(&r);
    seconds -= times_zone_s(&r);
    return times_finish(&r, day, seconds, ms, ret_unix_ms);
}

bool times_plain(const char *text, int64_t ahead_s, int64_t *ret_unix_ms)
{
    struct reader r = {.at = text};
    int64_t day, seconds;

    day = times_date_days(&r);
    times_expect(&r, "T ");
    seconds = times_clock_s(&r) - ahead_s;
    return times_finish(&r, day, seconds, 0, ret_unix_ms);
}

static int64_t times_month_named(struct reader *r)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (int month = 0; month < 12; month++)
        if (strncmp(r->at, names + 3 * month, 3) == 0) {
            r->at += 3;
            return month + 1;
        }
    r->bad = true;
    return 0;
}

bool times_rfc1123(const char *text, int64_t *ret_unix_ms)
{
    struct reader r = {.at = text};
    const char *comma = strchr(text, ',');
    int64_t day, month, year, seconds;

    if (comma != NULL) { /* the day of the week says nothing new, and has been wrong */
        r.at = comma + 1;
        times_expect(&r, " ");
    }
    day = times_number(&r, 1, 2);
    times_expect(&r, " ");
    month = times_month_named(&r);
    times_expect(&r, " ");
    year = times_number(&r, 4, 4);
    times_expect(&r, " ");
    seconds = times_clock_s(&r);
    times_expect(&r, " ");
    if (!r.bad && (strcmp(r.at, "GMT") == 0 || strcmp(r.at, "UTC") == 0))
        r.at += 3;
    else
        r.bad = true;
    return times_finish(&r, times_days(year, month, day), seconds, 0, ret_unix_ms);
}

int64_t times_deadline(const struct notice_now *now, int64_t unix_ms, int64_t longest_ms)
{
    int64_t left = unix_ms - now->unix_ms; /* both within a few thousand years: no overflow */

    if (left < 0)
        left = 0;
    if (left > longest_ms)
        left = longest_ms;
    return now->boot_ms + left;
}
