/* The numbers of points, and the keys of their pairs of a true class and a predicted label. */
#ifndef SEGJUDGE_POINTS_H
#define SEGJUDGE_POINTS_H

#include "kernel.h"

/* The bits of a label; a point's object number, and the class of a key, lie above. */
#define SJ_LABEL_BITS 16

/* Return the number of a point in bytes, pairs of bytes or words. */
static inline uint32_t sj_number_at(const uint8_t *points, int32_t size, int64_t i)
{
    uint16_t half;
    uint32_t whole;
    if (size == 4)
        return memcpy(&whole, points + 4 * i, sizeof whole), whole;
    return size == 2 ? (memcpy(&half, points + 2 * i, sizeof half), half) : points[i];
}

/* Write the key and the points of each cell of a table that has points; return their number. */
static inline int64_t sj_list_cells(const int64_t *table, int64_t classes, int64_t labels, int64_t *keys, int64_t *points)
{
    int64_t count = 0;
    for (int64_t class = 0; class < classes; class++)
        for (int64_t label = 0; label < labels; label++, table++)
            if (*table)
                keys[count] = class << SJ_LABEL_BITS | label, points[count++] = *table;
    return count;
}

#endif
