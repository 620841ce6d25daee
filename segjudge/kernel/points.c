/* The points of a scan -> their numbers by true class and predicted label.
 *
 * A point's label is in the lower 16 bits of its number. */
#include "points.h"

#include <stdlib.h>

#define LABEL_END ((int64_t)1 << SJ_LABEL_BITS)
#define MOST_CELLS ((int64_t)1 << 20)

/* Count points by true class and predicted label, and write the key and the points of each pair that has some.
 *
 * `classes` has the class of each label of the truth; points of no class are skipped. Predicted labels must be below
 * `columns`. There is space for `count * columns` keys, and behind them for as many numbers of points. */
SJ_EXPORT int sj_points(
    const uint8_t *truth, int32_t size, const uint8_t *prediction, int64_t points, const uint16_t *classes, int64_t labels,
    int64_t count, int64_t columns, int64_t *keys, int64_t *found)
{
    if (!truth || (size != 1 && size != 2 && size != 4) || !prediction || points < 1 || points > UINT32_MAX || !classes || labels < 1
        || labels > LABEL_END || count < 1 || count >= LABEL_END || columns < 1 || columns > LABEL_END
        || count * columns > MOST_CELLS || !keys || !found)
        return SJ_BAD_CALL;
    int64_t *cells = calloc((size_t)(count * columns), sizeof *cells);
    int status = cells ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t i = 0; i < points && status == SJ_FINE; i++) {
        uint32_t label = sj_number_at(truth, size, i) & (LABEL_END - 1);
        uint32_t column = sj_number_at(prediction, 4, i) & (LABEL_END - 1);
        if (label >= labels || column >= columns)
            status = SJ_BAD_DATA;
        else if (classes[label] < count)
            cells[classes[label] * columns + column]++;
    }
    if (status == SJ_FINE)
        *found = sj_list_cells(cells, count, columns, keys, keys + count * columns);
    free(cells);
    return status;
}
