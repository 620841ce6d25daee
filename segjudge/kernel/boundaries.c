/* Two masks of one object over some frames: what they have, share, and match along their boundaries. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define WORD 64
#define MOST_SIDE (1 << 24)

/* Words (frames, rows, across) at (top, left) of frames; left counts words. */
typedef struct {
    const uint64_t *words;
    int64_t top, left, rows, across;
} stack;

/* The boundary of one frame: a window of words, and in each row the words that are not zero: from, to.
 *
 * `near` holds for each row, from the disk's reach above the window on, the words of all rows within reach joined.
 */
typedef struct {
    uint64_t *words, *near;
    int64_t *spans;
    int64_t top, left, rows, across, area, pixels;
} edge;

/* Row by row what matches a pixel: columns from, to (inclusive); none where from > to. */
typedef struct {
    int64_t reach;
    int64_t *low, *high;
} disk;

static int inside(const stack *mask, int64_t frames, int64_t height, int64_t across)
{
    if (mask->rows < 0 || mask->across < 0 || mask->top < 0 || mask->left < 0)
        return 0;
    if (mask->rows > height - mask->top || mask->across > across - mask->left)
        return 0;
    return mask->words || !frames || !mask->rows || !mask->across;
}

static int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smallest(int64_t a, int64_t b) { return a < b ? a : b; }

/* Count the pixels of one frame of a mask, and find its rows that have any: from, to. */
static int64_t area(const stack *mask, int64_t frame, int64_t *from, int64_t *to)
{
    const uint64_t *row = mask->words + frame * mask->rows * mask->across;
    int64_t total = 0;
    *from = mask->rows, *to = 0;
    for (int64_t y = 0; y < mask->rows; y++, row += mask->across) {
        int64_t before = total;
        for (int64_t x = 0; x < mask->across; x++)
            total += sj_ones(row[x]);
        if (total > before) {
            *from = smallest(*from, y);
            *to = y + 1;
        }
    }
    return total;
}

static int64_t shared(const stack *a, const stack *b, int64_t frame)
{
    int64_t top = largest(a->top, b->top), bottom = smallest(a->top + a->rows, b->top + b->rows);
    int64_t left = largest(a->left, b->left), right = smallest(a->left + a->across, b->left + b->across), total = 0;
    for (int64_t y = top; y < bottom; y++) {
        const uint64_t *one = a->words + (frame * a->rows + y - a->top) * a->across - a->left;
        const uint64_t *other = b->words + (frame * b->rows + y - b->top) * b->across - b->left;
        for (int64_t x = left; x < right; x++)
            total += sj_ones(one[x] & other[x]);
    }
    return total;
}

/* Put a row of a mask, and the one word to its left that may get a boundary, into `bits`; rows outside are empty. */
static void take_row(uint64_t *bits, const stack *mask, int64_t frame, int64_t y, int64_t back, int64_t across)
{
    memset(bits, 0, (size_t)(across + 1) * sizeof *bits);
    if (y >= mask->top && y < mask->top + mask->rows)
        memcpy(bits + back, mask->words + (frame * mask->rows + y - mask->top) * mask->across,
               (size_t)mask->across * sizeof *bits);
}

/* Count a frame's pixels, and find those that differ from the one to their right, below, or diagonal.
 *
 * The border of the image makes no boundary: beyond the last column a pixel repeats, and the last row has none below.
 * `lines` has room for two rows of across + 1 words.
 */
static void find_edge(edge *out, const stack *mask, int64_t frame, int64_t height, int64_t width, uint64_t *lines)
{
    int64_t from, to, back = mask->left > 0;
    out->pixels = out->rows = 0;
    out->area = area(mask, frame, &from, &to);
    if (!out->area)
        return;
    out->top = largest(mask->top + from - 1, 0), out->left = mask->left - back;
    out->rows = mask->top + to - out->top, out->across = mask->across + back;
    int64_t last_word = (width - 1) / WORD - out->left;
    uint64_t last_bit = (uint64_t)1 << ((width - 1) % WORD);
    uint64_t *bits = lines, *below = lines + out->across + 1;
    take_row(bits, mask, frame, out->top, back, out->across);
    for (int64_t row = 0; row < out->rows; row++) {
        int64_t y = out->top + row;
        take_row(below, mask, frame, y + 1 < height ? y + 1 : y, back, out->across);
        uint64_t *words = out->words + row * out->across;
        for (int64_t x = 0; x < out->across; x++) {
            uint64_t right = bits[x] >> 1 | bits[x + 1] << (WORD - 1);
            uint64_t corner = below[x] >> 1 | below[x + 1] << (WORD - 1);
            words[x] = (bits[x] ^ right) | (bits[x] ^ below[x]) | (bits[x] ^ corner);
        }
        if (last_word < out->across) {
            uint64_t one = bits[last_word], under = below[last_word];
            uint64_t right = one >> 1 | (one & last_bit), corner = under >> 1 | (under & last_bit);
            words[last_word] = (one ^ right) | (one ^ under) | (one ^ corner);
        }
        int64_t first = out->across, last = 0;
        for (int64_t x = 0; x < out->across; x++)
            if (words[x]) {
                out->pixels += sj_ones(words[x]);
                first = smallest(first, x);
                last = x + 1;
            }
        out->spans[2 * row] = first, out->spans[2 * row + 1] = last;
        uint64_t *other = bits;
        bits = below, below = other;
    }
}

static uint64_t word_at(const uint64_t *row, int64_t across, int64_t x)
{
    return x >= 0 && x < across ? row[x] : 0;
}

/* Join the 64 pixels from bit `at` of a row with those up to `count` - 1 to their right; count is 1 to 64. */
static uint64_t joined(const uint64_t *row, int64_t across, int64_t at, int64_t count)
{
    int64_t x = at >= 0 ? at / WORD : -((WORD - 1 - at) / WORD);
    int shift = (int)(at - x * WORD);
    uint64_t near = word_at(row, across, x), middle = word_at(row, across, x + 1), far = word_at(row, across, x + 2);
    uint64_t low = near, high = middle;
    if (shift) {
        low = near >> shift | middle << (WORD - shift);
        high = middle >> shift | far << (WORD - shift);
    }
    if (!(low | high))
        return 0;
    for (int64_t done = 1; done < count;) {
        int step = (int)smallest(done, count - done);
        low |= low >> step | high << (WORD - step);
        high |= high >> step;
        done += step;
    }
    return low;
}

/* Join the pixels from `low` to `high` of a word's place in a row. */
static uint64_t spread(const uint64_t *row, int64_t across, int64_t x, int64_t low, int64_t high)
{
    uint64_t found = 0;
    for (; low <= high; low += WORD)
        found |= joined(row, across, x * WORD + low, smallest(WORD, high - low + 1));
    return found;
}

/* Fill `near`, doubling the rows that are joined. */
static void join_rows(edge *out, int64_t reach)
{
    int64_t across = out->across, rows = out->rows + 4 * reach, joined_rows = 1, wanted = 2 * reach + 1;
    uint64_t *words = out->near;
    memset(words, 0, (size_t)(rows * across) * sizeof *words);
    memcpy(words + 2 * reach * across, out->words, (size_t)(out->rows * across) * sizeof *words);
    while (joined_rows < wanted) {
        int64_t step = smallest(joined_rows, wanted - joined_rows);
        for (int64_t i = 0; i < (rows - step) * across; i++)
            words[i] |= words[i + step * across];
        joined_rows += step;
    }
}

/* Return which of the boundary's bits at a word have a pixel of the other boundary within the disk. */
static uint64_t matched_bits(uint64_t bits, int64_t y, int64_t x, const edge *other, const disk *near)
{
    int64_t first = y - (other->top - near->reach), across = other->across, column = x - other->left;
    if (first < 0 || first >= other->rows + 2 * near->reach)
        return 0;
    bits &= spread(other->near + first * across, across, column, -near->reach, near->reach);
    uint64_t rest = bits;
    for (int64_t distance = 0; distance <= near->reach && rest; distance++)
        for (int side = 0; side < (distance ? 2 : 1) && rest; side++) {
            int64_t dy = side ? distance : -distance, row = y + dy - other->top;
            int64_t low = near->low[dy + near->reach], high = near->high[dy + near->reach];
            if (row < 0 || row >= other->rows || low > high)
                continue;
            const int64_t *span = other->spans + 2 * row;
            if (column * WORD + WORD + high > span[0] * WORD && column * WORD + low < span[1] * WORD)
                rest &= ~spread(other->words + row * across, across, column, low, high);
        }
    return bits & ~rest;
}

/* Count the pixels of a boundary that match the other one. */
static int64_t matched(const edge *one, edge *other, const disk *near)
{
    int64_t total = 0;
    if (!one->pixels || !other->pixels)
        return 0;
    join_rows(other, near->reach);
    for (int64_t row = 0; row < one->rows; row++)
        for (int64_t x = one->spans[2 * row]; x < one->spans[2 * row + 1]; x++) {
            uint64_t bits = one->words[row * one->across + x];
            if (bits)
                total += sj_ones(matched_bits(bits, one->top + row, one->left + x, other, near));
        }
    return total;
}

/* Turn columns (dx, low, high) into rows; return whether each row is without a gap. */
static int rows_of_disk(disk *near, const int32_t *columns, int64_t count)
{
    for (int64_t i = 0; i < 2 * near->reach + 1; i++)
        near->low[i] = 1, near->high[i] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t dx = columns[3 * i];
        for (int64_t dy = columns[3 * i + 1]; dy <= columns[3 * i + 2]; dy++) {
            int64_t *low = near->low + dy + near->reach, *high = near->high + dy + near->reach;
            if (*low > *high)
                *low = *high = dx;
            else if (dx == *high + 1)
                *high = dx;
            else
                return 0;
        }
    }
    return 1;
}

static int64_t reach_of(const int32_t *columns, int64_t count)
{
    int64_t reach = 0;
    for (int64_t i = 0; i < 3 * count; i++)
        reach = largest(reach, columns[i] < 0 ? -(int64_t)columns[i] : columns[i]);
    return reach;
}

static int64_t edge_words(const stack *mask) { return (mask->rows + 1) * (mask->across + 1); }

/* Count, for each frame, the pixels of two masks: those of each, shared, of each boundary, and matched of each.
 *
 * `columns` is a disk as (dx, from, to), dx rising: which offsets around a boundary pixel match it.
 */
SJ_EXPORT int sj_compare(
    const uint64_t *truth_words, const int64_t *truth_window, const uint64_t *predicted_words,
    const int64_t *predicted_window, int64_t frames, int64_t height, int64_t width, const int32_t *columns,
    int64_t column_count, int64_t *counts)
{
    if (!truth_window || !predicted_window || !columns || !counts || frames < 0 || frames > MOST_SIDE || height < 1
        || width < 1 || height > MOST_SIDE || width > MOST_SIDE || column_count < 1 || column_count > MOST_SIDE)
        return SJ_BAD_CALL;
    const int64_t *t = truth_window, *p = predicted_window;
    stack masks[2] = {{truth_words, t[0], t[1], t[2], t[3]}, {predicted_words, p[0], p[1], p[2], p[3]}};
    int64_t across = (width + WORD - 1) / WORD, reach = reach_of(columns, column_count);
    if (!inside(&masks[0], frames, height, across) || !inside(&masks[1], frames, height, across) || reach > MOST_SIDE)
        return SJ_BAD_CALL;
    int64_t near_words = 4 * reach * (across + 1) + largest(edge_words(&masks[0]), edge_words(&masks[1]));
    int64_t words = edge_words(&masks[0]) + edge_words(&masks[1]) + near_words + 2 * (across + 2);
    int64_t numbers = 2 * (masks[0].rows + 1) + 2 * (masks[1].rows + 1) + 2 * (2 * reach + 1);
    uint64_t *scratch = malloc((size_t)words * sizeof *scratch);
    int64_t *spans = malloc((size_t)numbers * sizeof *spans);
    int status = SJ_NO_MEMORY;
    if (scratch && spans) {
        edge edges[2];
        edges[0].words = scratch, edges[0].spans = spans;
        edges[1].words = scratch + edge_words(&masks[0]), edges[1].spans = spans + 2 * (masks[0].rows + 1);
        edges[0].near = edges[1].near = edges[1].words + edge_words(&masks[1]);
        uint64_t *lines = edges[0].near + near_words;
        disk near = {reach, edges[1].spans + 2 * (masks[1].rows + 1), NULL};
        near.high = near.low + 2 * reach + 1;
        status = rows_of_disk(&near, columns, column_count) ? SJ_FINE : SJ_BAD_CALL;
        for (int64_t frame = 0; frame < frames && status == SJ_FINE; frame++) {
            int64_t *out = counts + 7 * frame;
            for (int side = 0; side < 2; side++) {
                find_edge(&edges[side], &masks[side], frame, height, width, lines);
                out[side] = edges[side].area, out[3 + side] = edges[side].pixels;
            }
            out[2] = out[0] && out[1] ? shared(&masks[0], &masks[1], frame) : 0;
            out[5] = matched(&edges[0], &edges[1], &near);
            out[6] = matched(&edges[1], &edges[0], &near);
        }
    }
    free(scratch);
    free(spans);
    return status;
}
