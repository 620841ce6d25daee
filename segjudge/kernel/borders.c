/* COCO's run lengths as text -> the borders of parts. */
#include "borders.h"

int64_t sj_take_borders(sj_runs *of, int64_t *borders)
{
    int64_t count = 0, value;
    if (of->is_object && of->from.at != of->from.end) /* the next part begins behind the last run */
        borders[count++] = of->at;
    for (; of->from.at != of->from.end && count < SJ_BORDERS; of->is_object ^= 1) {
        int64_t *run = of->is_object ? &of->object : &of->background;
        if (!take_value(&of->from, &value) || (*run += value) < 0 || (of->at += *run) > SJ_MOST_PIXELS)
            return -1;
        borders[count++] = of->at;
    }
    /* Behind the last run, or before the next batch, there may be a begin without an end. */
    return count & ~(int64_t)1;
}
