/* daly - see daly.h. */
#include "schema/rules/daly.h"

#include <math.h>

int64_t daly_interval_ms(int64_t cost_ms, int64_t between_ms)
{
    double c = (double)cost_ms, m = (double)between_ms, part;

    if (c >= 2 * m)
        return between_ms;
    part = c / (2 * m);
    return (int64_t)(sqrt(2 * c * m) * (1 + sqrt(part) / 3 + part / 9));
}
