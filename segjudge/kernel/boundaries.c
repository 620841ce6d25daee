/* Pairs of masks -> counts per frame: pixels, shared pixels, and matched pixels of the boundaries. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define WORD 64
#define MOST_SIDE (1 << 24)
#define MOST_MASKS (1 << 18)
#define MOST_WORDS ((int64_t)1 << 36)

/* Words (frames, rows, across) at (top, left) of frames; left counts words. */
typedef struct {
    const uint64_t *words;
    int64_t top, left, rows, across;
} stack;

/* The boundary of one frame: a window of words, and for each row the span of its non-zero words: from, to.
 *
 * For each row, `near` is the union of the words of all rows within the disk's reach; it begins that far above the
 * window. */
typedef struct {
    uint64_t *words, *near;
    int64_t *spans;
    int64_t top, left, rows, across, area, pixels;
    int is_known, is_joined; /* of this frame */
} edge;

/* For each row, the range of columns that match a pixel: from, to (inclusive); empty if from > to. */
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

static int64_t words_of(const stack *mask) { return mask->rows * mask->across; }

static int is_empty(const uint64_t *words, int64_t count)
{
    uint64_t any = 0;
    for (int64_t i = 0; i < count; i++)
        any |= words[i];
    return !any;
}

/* Find the span of a row's non-zero words: from, to; from >= to if there are none. */
static void find_span(const uint64_t *words, int64_t count, int64_t span[2])
{
    int64_t from = 0, to = count;
    while (from < to && !words[from])
        from++;
    while (from < to && !words[to - 1])
        to--;
    span[0] = from, span[1] = to;
}

/* The words whose bits are counted together: a byte holds the sum of eight bits of each. */
#define TOGETHER 31

/* Return the number of set bits of some words, whatever they are. */
static int64_t count_ones(const uint64_t *words, int64_t count)
{
    const uint64_t low = 0x00ff00ff00ff00ffu;
    int64_t total = 0;
    for (; count > 0; words += TOGETHER, count -= TOGETHER) {
        uint64_t sums = 0;
        for (int64_t i = 0; i < smallest(count, TOGETHER); i++) {
            uint64_t word = words[i];
            word -= (word >> 1) & 0x5555555555555555u;
            word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
            sums += (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
        }
        sums = (sums & low) + ((sums >> 8) & low);
        total += (int64_t)(sums * 0x0001000100010001u >> 48);
    }
    return total;
}

/* Return whether two masks have the same window and equal words in one frame. */
static int are_equal(const stack *a, const stack *b, int64_t frame)
{
    return a->top == b->top && a->left == b->left && a->rows == b->rows && a->across == b->across
        && memcmp(a->words + frame * words_of(a), b->words + frame * words_of(b), (size_t)words_of(a) * sizeof *a->words) == 0;
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

/* Return the bits of a word that differ from their right, lower or diagonal neighbour; the next words hold the
 * neighbours of the last bit. */
static inline uint64_t change(uint64_t bits, uint64_t next, uint64_t below, uint64_t next_below)
{
    uint64_t right = bits >> 1 | next << (WORD - 1), corner = below >> 1 | next_below << (WORD - 1);
    return (bits | right | below | corner) & ~(bits & right & below & corner);
}

/* Count a frame's pixels, and find those that differ from their right, lower or diagonal neighbour.
 *
 * The border of the image makes no boundary: the last column has no right neighbour, the last row none below.
 * `zeros` is a row outside the mask's window. */
static void find_edge(edge *out, const stack *mask, int64_t frame, int64_t height, int64_t width, const uint64_t *zeros)
{
    int64_t across = mask->across, back = mask->left > 0, from = 0, to = mask->rows;
    const uint64_t *words = mask->words + frame * words_of(mask);
    out->is_known = 1, out->is_joined = 0;
    out->pixels = out->rows = out->area = 0;
    while (from < to && is_empty(words + from * across, across))
        from++;
    while (from < to && is_empty(words + (to - 1) * across, across))
        to--;
    if (from == to)
        return;
    int64_t first_row = mask->top + from > 0 ? from - 1 : from, last_word = (width - 1) / WORD - mask->left;
    uint64_t last_bit = (uint64_t)1 << ((width - 1) % WORD);
    out->top = mask->top + first_row, out->left = mask->left - back;
    out->rows = to - first_row, out->across = across + back;
    for (int64_t row = first_row; row < to; row++) {
        const uint64_t *bits = row >= from ? words + row * across : zeros;
        const uint64_t *below = row + 1 < to ? words + (row + 1) * across : mask->top + row + 1 < height ? zeros : bits;
        uint64_t *changes = out->words + (row - first_row) * out->across + back;
        for (int64_t x = 0; x + 1 < across; x++)
            changes[x] = change(bits[x], bits[x + 1], below[x], below[x + 1]);
        changes[across - 1] = change(bits[across - 1], 0, below[across - 1], 0);
        if (last_word == across - 1) {
            uint64_t one = bits[last_word], under = below[last_word];
            uint64_t right = one >> 1 | (one & last_bit), corner = under >> 1 | (under & last_bit);
            changes[last_word] = (one | right | under | corner) & ~(one & right & under & corner);
        }
        if (back)
            changes[-1] = (bits[0] | below[0]) << (WORD - 1);
        changes -= back;
        int64_t *span = out->spans + 2 * (row - first_row);
        find_span(changes, out->across, span);
        out->area += count_ones(bits, across);
        out->pixels += count_ones(changes + span[0], span[1] - span[0]);
    }
}

static uint64_t word_at(const uint64_t *row, int64_t across, int64_t x)
{
    return x >= 0 && x < across ? row[x] : 0;
}

/* Return the union of the 64 pixels from bit `at` of a row with the `count` - 1 windows to their right; count is 1
 * to 64. */
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

/* Return the union of a row's pixels shifted by `low` to `high`, at a word's position. */
static uint64_t spread(const uint64_t *row, int64_t across, int64_t x, int64_t low, int64_t high)
{
    uint64_t found = 0;
    for (; low <= high; low += WORD)
        found |= joined(row, across, x * WORD + low, smallest(WORD, high - low + 1));
    return found;
}

/* Fill `near`, doubling the number of united rows at each step. */
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
    if (!other->is_joined) {
        join_rows(other, near->reach);
        other->is_joined = 1;
    }
    int64_t across = other->across, aside = (near->reach + WORD - 1) / WORD, right = other->left - one->left;
    int64_t above = one->top - other->top + near->reach; /* rows of `near` before the first row */
    int64_t first = largest(0, -above), last = smallest(one->rows, other->rows + 2 * near->reach - above), span[2];
    for (int64_t row = first; row < last; row++) {
        find_span(other->near + (above + row) * across, across, span);
        int64_t from = largest(one->spans[2 * row], span[0] + right - aside);
        int64_t to = span[0] < span[1] ? smallest(one->spans[2 * row + 1], span[1] + right + aside) : from;
        for (int64_t x = from; x < to; x++) {
            uint64_t bits = one->words[row * one->across + x];
            if (bits)
                total += sj_ones(matched_bits(bits, one->top + row, one->left + x, other, near));
        }
    }
    return total;
}

/* Convert columns (dx, low, high) into rows; return whether no row has a gap. */
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

/* Return whether a pixel matches itself. */
static int has_centre(const disk *near) { return near->low[near->reach] <= 0 && near->high[near->reach] >= 0; }

/* Count a pair in one frame; its seven counts are `step` apart. */
static void count_pair(
    const stack *masks[2], edge *edges[2], const disk *near, int64_t frame, const int64_t size[2], const uint64_t *zeros,
    int64_t *out, int64_t step)
{
    if (!edges[0]->is_known)
        find_edge(edges[0], masks[0], frame, size[0], size[1], zeros);
    if (has_centre(near) && are_equal(masks[0], masks[1], frame)) {
        for (int i = 0; i < 3; i++)
            out[i * step] = edges[0]->area;
        for (int i = 3; i < 7; i++)
            out[i * step] = edges[0]->pixels;
        return;
    }
    if (!edges[1]->is_known)
        find_edge(edges[1], masks[1], frame, size[0], size[1], zeros);
    for (int side = 0; side < 2; side++) {
        out[side * step] = edges[side]->area, out[(3 + side) * step] = edges[side]->pixels;
        out[(5 + side) * step] = matched(edges[side], edges[!side], near);
    }
    out[2 * step] = edges[0]->area && edges[1]->area ? shared(masks[0], masks[1], frame) : 0;
}

static int64_t edge_words(const stack *mask) { return (mask->rows + 1) * (mask->across + 1); }
static int64_t near_words(const stack *mask, int64_t reach) { return (mask->rows + 1 + 4 * reach) * (mask->across + 1); }

/* Count pixels for each pair of masks and each frame: of each mask, shared ones, of each boundary, and matched ones of
 * each boundary.
 *
 * `counts` is (pairs, 7, frames). `columns` is a disk as (dx, from, to) with rising dx: the offsets from a boundary
 * pixel that match it. */
SJ_EXPORT int sj_compare(
    const uint64_t *const *words, const int64_t *windows, int64_t mask_count, const int64_t *pairs, int64_t pair_count,
    int64_t frames, int64_t height, int64_t width, const int32_t *columns, int64_t column_count, int64_t *counts)
{
    if (!words || !windows || !pairs || !columns || !counts || mask_count < 1 || mask_count > MOST_MASKS || pair_count < 0
        || pair_count > MOST_SIDE || frames < 0 || frames > MOST_SIDE || height < 1 || width < 1 || height > MOST_SIDE
        || width > MOST_SIDE || column_count < 1 || column_count > MOST_SIDE)
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < 2 * pair_count; i++)
        if (pairs[i] < 0 || pairs[i] >= mask_count)
            return SJ_BAD_CALL;
    int64_t across = (width + WORD - 1) / WORD, reach = reach_of(columns, column_count), size[2] = {height, width};
    if (reach > MOST_SIDE)
        return SJ_BAD_CALL;
    int64_t total = across, numbers = 2 * (2 * reach + 1);
    for (int64_t i = 0; i < mask_count; i++) {
        stack mask = {words[i], windows[4 * i], windows[4 * i + 1], windows[4 * i + 2], windows[4 * i + 3]};
        if (!inside(&mask, frames, height, across))
            return SJ_BAD_CALL;
        total += edge_words(&mask) + near_words(&mask, reach);
        numbers += 2 * (mask.rows + 1);
        if (total > MOST_WORDS)
            return SJ_NO_MEMORY;
    }
    uint64_t *scratch = malloc((size_t)total * sizeof *scratch), *at = scratch;
    int64_t *spans = malloc((size_t)numbers * sizeof *spans), *span = spans;
    stack *masks = malloc((size_t)mask_count * sizeof *masks);
    edge *edges = malloc((size_t)mask_count * sizeof *edges);
    int status = SJ_NO_MEMORY;
    if (scratch && spans && masks && edges) {
        const uint64_t *zeros = memset(at, 0, (size_t)across * sizeof *at);
        at += across;
        for (int64_t i = 0; i < mask_count; i++) {
            masks[i] = (stack){words[i], windows[4 * i], windows[4 * i + 1], windows[4 * i + 2], windows[4 * i + 3]};
            edges[i].words = at, edges[i].near = at + edge_words(&masks[i]), edges[i].spans = span;
            at = edges[i].near + near_words(&masks[i], reach), span += 2 * (masks[i].rows + 1);
        }
        disk near = {reach, span, span + 2 * reach + 1};
        status = rows_of_disk(&near, columns, column_count) ? SJ_FINE : SJ_BAD_CALL;
        for (int64_t frame = 0; frame < frames && status == SJ_FINE; frame++) {
            for (int64_t i = 0; i < mask_count; i++)
                edges[i].is_known = 0;
            for (int64_t i = 0; i < pair_count; i++) {
                int64_t t = pairs[2 * i], p = pairs[2 * i + 1];
                const stack *both[2] = {masks + t, masks + p};
                edge *their_edges[2] = {edges + t, edges + p};
                count_pair(both, their_edges, &near, frame, size, zeros, counts + 7 * frames * i + frame, frames);
            }
        }
    }
    free(scratch);
    free(spans);
    free(masks);
    free(edges);
    return status;
}
