/* From the inflated rows of a PNG to the packed masks of all objects in a frame. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define WORD 64
#define LABELS 256
/* A side of an image; the caller's frames are far smaller. */
#define MOST_SIDE (1 << 24)

/* Undo "Sub": each residual is added to the pixel on the left.  Most are zero, and then eight pixels are one. */
static void add_left(uint8_t *row, const uint8_t *residuals, int64_t count)
{
    uint8_t left = 0;
    int64_t x = 0;
    while (x < count) {
        if (x + 8 <= count && sj_load(residuals + x) == 0) {
            memset(row + x, left, 8);
            x += 8;
        } else {
            int64_t end = x + 8 < count ? x + 8 : count;
            for (; x < end; x++)
                row[x] = left = (uint8_t)(left + residuals[x]);
        }
    }
}

static void add_up(uint8_t *row, const uint8_t *residuals, const uint8_t *above, int64_t count)
{
    for (int64_t x = 0; x < count; x++)
        row[x] = (uint8_t)(residuals[x] + above[x]);
}

/* Undo "Average".  Where residuals are zero and the pixels above equal the one on the left, eight pixels are one. */
static void add_average(uint8_t *row, const uint8_t *residuals, const uint8_t *above, int64_t count)
{
    uint8_t left = 0;
    int64_t x = 0;
    while (x < count) {
        if (x + 8 <= count && sj_load(residuals + x) == 0 && sj_load(above + x) == left * 0x0101010101010101u) {
            memset(row + x, left, 8);
            x += 8;
        } else {
            int64_t end = x + 8 < count ? x + 8 : count;
            for (; x < end; x++)
                row[x] = left = (uint8_t)(residuals[x] + ((left + above[x]) >> 1));
        }
    }
}

static uint8_t paeth(int left, int up, int corner)
{
    int a = abs(up - corner), b = abs(left - corner), c = abs(left + up - 2 * corner);
    return (uint8_t)(a <= b && a <= c ? left : b <= c ? up : corner);
}

/* Undo "Paeth".  Where residuals are zero and the row above does not change, the pixel on the left is repeated. */
static void add_paeth(uint8_t *row, const uint8_t *residuals, const uint8_t *above, int64_t count)
{
    uint8_t left = 0, corner = 0;
    int64_t x = 0;
    while (x < count) {
        if (x + 8 <= count && sj_load(residuals + x) == 0 && sj_load(above + x) == corner * 0x0101010101010101u) {
            memset(row + x, left, 8);
            x += 8;
        } else {
            int64_t end = x + 8 < count ? x + 8 : count;
            for (; x < end; x++) {
                row[x] = left = (uint8_t)(residuals[x] + paeth(left, above[x], corner));
                corner = above[x];
            }
        }
    }
}

/* Undo one row's filter in `space`, or leave it where it needs none; NULL when there is no such filter. */
static const uint8_t *unfiltered(uint8_t *space, const uint8_t *source, const uint8_t *above, int64_t count)
{
    const uint8_t *residuals = source + 1;
    switch (source[0]) {
    case 0: return residuals;
    case 1: add_left(space, residuals, count); return space;
    case 2: add_up(space, residuals, above, count); return space;
    case 3: add_average(space, residuals, above, count); return space;
    case 4: add_paeth(space, residuals, above, count); return space;
    default: return NULL;
    }
}

/* One byte for each pixel of 1, 2 or 4 bits; `labels` has room for the pixels of whole bytes. */
static void widen(uint8_t *labels, const uint8_t *row, int64_t width, int depth)
{
    uint8_t mask = (uint8_t)((1 << depth) - 1);
    for (int64_t x = 0; x < width; row++)
        for (int shift = 8 - depth; shift >= 0; shift -= depth)
            labels[x++] = (uint8_t)(*row >> shift & mask);
}

/* Which of 64 labels are this one. */
static uint64_t equal(const uint8_t *labels, uint8_t label)
{
    uint64_t bits = 0;
#ifdef __SSE2__
    __m128i wanted = _mm_set1_epi8((char)label);
    for (int part = 0; part < 4; part++) {
        __m128i sixteen = _mm_loadu_si128((const __m128i *)(labels + 16 * part));
        uint64_t found = (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, wanted));
        bits |= found << (16 * part);
    }
#else
    for (int part = 0; part < 8; part++) {
        uint64_t other = sj_load(labels + 8 * part) ^ label * 0x0101010101010101u;
        uint64_t differs = ((other & 0x7f7f7f7f7f7f7f7fu) + 0x7f7f7f7f7f7f7f7fu) | other;
        uint64_t same = (~differs >> 7) & 0x0101010101010101u;
        bits |= (same * 0x0102040810204080u >> 56) << (8 * part);
    }
#endif
    return bits;
}

/* The lowest set bit's index, of a word that is not zero. */
static int lowest(uint64_t word)
{
    return __builtin_ctzll(word);
}

typedef struct {
    uint64_t *words;      /* of all objects: (slot, frame, row, word) */
    int64_t slots;        /* objects for which there is space */
    int64_t slot_words;   /* words of all frames of an object */
    int32_t *slot_of;     /* of each label, or -1 */
    int32_t *boxes;       /* of each slot: first row, row after the last, first word, word after the last */
    int64_t used;
    uint8_t *seen;        /* of each label, 0 included: whether it is in this frame */
    int merged;           /* every label but 0 goes into one slot, that of label 1 */
} planes;

static int take_slot(planes *all, uint8_t label, int64_t height, int64_t across)
{
    if (all->slot_of[label] < 0) {
        if (all->used >= all->slots)
            return 0;
        int32_t *box = all->boxes + 4 * all->used;
        box[0] = (int32_t)height, box[1] = 0, box[2] = (int32_t)across, box[3] = 0;
        all->slot_of[label] = (int32_t)all->used++;
    }
    return 1;
}

/* Set the bits of the labels under a word, of which only the `valid` ones are pixels; return 0 where one has no slot. */
static int pack_word(planes *all, const uint8_t *labels, uint64_t valid, int64_t at, const int64_t place[2], const int64_t size[2])
{
    uint64_t empty = equal(labels, 0), rest = ~empty;
    if (empty & valid)
        all->seen[0] = 1;
    while (rest) {
        uint8_t label = labels[lowest(rest)], object = all->merged ? 1 : label;
        uint64_t bits = equal(labels, label);
        all->seen[label] = 1;
        if (!take_slot(all, object, size[0], size[1]))
            return 0;
        int64_t slot = all->slot_of[object];
        int32_t *box = all->boxes + 4 * slot, row = (int32_t)place[0], column = (int32_t)place[1];
        all->words[slot * all->slot_words + at] |= bits;
        if (row < box[0]) box[0] = row;
        if (row >= box[1]) box[1] = row + 1;
        if (column < box[2]) box[2] = column;
        if (column >= box[3]) box[3] = column + 1;
        rest &= ~bits;
    }
    return 1;
}

static int pack_rows(planes *all, const uint8_t *raw, int depth, int64_t frame, int64_t height, int64_t width, uint8_t *rows)
{
    int64_t across = (width + WORD - 1) / WORD, padded = across * WORD;
    int64_t bytes = depth ? (width * depth + 7) / 8 : width, step = depth ? bytes + 1 : width;
    int64_t size[2] = {height, across};
    uint64_t tail = ~(uint64_t)0 >> (across * WORD - width);
    uint8_t *spaces[2] = {rows, rows + padded}, *labels = rows + 2 * padded, last[WORD] = {0};
    const uint8_t *above = rows;
    memset(rows, 0, (size_t)(3 * padded));
    for (int64_t y = 0; y < height; y++, raw += step) {
        const uint8_t *row = depth ? unfiltered(spaces[above == spaces[0]], raw, above, bytes) : raw;
        if (!row)
            return SJ_BAD_DATA;
        const uint8_t *pixels = row;
        if (depth && depth < 8) {
            widen(labels, row, width, depth);
            pixels = labels;
        }
        memcpy(last, pixels + WORD * (across - 1), (size_t)(width - WORD * (across - 1)));
        for (int64_t column = 0; column < across; column++) {
            int64_t place[2] = {y, column}, at = (frame * height + y) * across + column;
            int is_last = column + 1 == across;
            const uint8_t *word = is_last ? last : pixels + WORD * column;
            if (!pack_word(all, word, is_last ? tail : ~(uint64_t)0, at, place, size))
                return SJ_FULL;
        }
        above = row;
    }
    return SJ_FINE;
}

/* Pack one frame: set in `words` (slots, frames, height, words across), which is zero there, the bits of each label.
 *
 * `room` says how many words there are, which must be as many as these sides make.
 * `raw` holds the filtered rows of a grey or palette PNG of 1 to 8 bits, or plain labels of a byte where depth is 0.
 * `slot_of` (256 labels) and `boxes` (slots × 4) are filled as labels occur; `used` says how many slots are taken, and
 * `seen` (256 labels) which labels this frame has.  Where `merged` is not 0 all labels but 0 make one object.
 */
SJ_EXPORT int sj_pack_frame(
    const uint8_t *raw, int64_t length, int32_t depth, int64_t height, int64_t width, int64_t frame, int64_t frames,
    uint64_t *words, int64_t room, int64_t slots, int32_t *slot_of, int32_t *boxes, int64_t *used, uint8_t *seen, int32_t merged)
{
    if (!raw || !words || !slot_of || !boxes || !used || !seen || height < 1 || width < 1 || height > MOST_SIDE
        || width > MOST_SIDE || frame < 0 || frame >= frames || frames > MOST_SIDE || slots < 1 || slots >= LABELS
        || *used < 0 || *used > slots)
        return SJ_BAD_CALL;
    if (depth != 0 && depth != 1 && depth != 2 && depth != 4 && depth != 8)
        return SJ_BAD_CALL;
    int64_t step = depth ? 1 + (width * depth + 7) / 8 : width;
    if (length != height * step)
        return SJ_BAD_CALL;
    for (int label = 0; label < LABELS; label++)
        if (slot_of[label] < -1 || slot_of[label] >= *used)
            return SJ_BAD_CALL;
    int64_t across = (width + WORD - 1) / WORD;
    if (slots > room / frames / height / across || slots * frames * height * across != room) /* which cannot overflow */
        return SJ_BAD_CALL;
    uint8_t *rows = malloc((size_t)(3 * across * WORD));
    if (!rows)
        return SJ_NO_MEMORY;
    planes all = {words, slots, frames * height * across, slot_of, boxes, *used, seen, merged};
    memset(seen, 0, LABELS);
    int status = pack_rows(&all, raw, depth, frame, height, width, rows);
    *used = all.used;
    free(rows);
    return status;
}
