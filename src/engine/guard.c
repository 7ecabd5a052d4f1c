/* guard.c - periodic tails. */
#include "src/engine/guard.h"

#include <string.h>

/* Length of the longest tail of out[0..n) with the given period. */
static int tail_with_period(const int32_t *out, int n, int period)
{
    int length = period;
    while (length < n && out[n - 1 - length] == out[n - 1 - length + period]) {
        length++;
    }
    return length;
}

/* The smallest period whose tail is a loop; 0 when there is none. */
static int loop_period(const int32_t *out, int n, int *length)
{
    for (int period = 1; period <= GUARD_PERIOD && period * GUARD_REPEATS <= n; period++) {
        *length = tail_with_period(out, n, period);
        if (*length >= period * GUARD_REPEATS && *length >= GUARD_SPAN) {
            return period;
        }
    }
    return 0;
}

static int count_pattern(const int32_t *text, int n, const int32_t *pattern, int period)
{
    int count = 0;
    for (int i = 0; i + period <= n;) {
        if (memcmp(text + i, pattern, (size_t)period * sizeof(*text)) == 0) {
            count++;
            i += period;
        } else {
            i++;
        }
    }
    return count;
}

bool guard_repeats(const int32_t *out, int n, const int32_t *draft, int n_draft)
{
    int length;
    const int period = loop_period(out, n, &length);
    if (!period) {
        return false;
    }
    const int in_draft = draft ? count_pattern(draft, n_draft, out + n - period, period) : 0;
    return length / period > in_draft + GUARD_REPEATS - 1;
}

int guard_cut(const int32_t *out, int n)
{
    int length;
    const int period = loop_period(out, n, &length);
    return period ? n - length + period : n;
}
