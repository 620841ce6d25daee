/* The labels of a frame -> the packed masks of its objects. */
#include "png.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define WORD 64
#define LABELS 256
/* A side of an image; the caller's frames are far smaller. */
#define MOST_SIDE (1 << 24)

/* Write one byte for each pixel of 1, 2 or 4 bits; `labels` has room for the pixels of whole bytes. */
static void widen(uint8_t *labels, const uint8_t *row, int64_t width, int depth)
{
    uint8_t mask = (uint8_t)((1 << depth) - 1);
    for (int64_t x = 0; x < width; row++)
        for (int shift = 8 - depth; shift >= 0; shift -= depth)
            labels[x++] = (uint8_t)(*row >> shift & mask);
}

/* Return flags of the labels among 64 that equal this one. */
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

/* Return the index of the lowest set bit of a non-zero word. */
static int lowest(uint64_t word)
{
    return __builtin_ctzll(word);
}

/* The masks of a block of frames, filled frame by frame; kernel.py has the same fields. */
typedef struct {
    uint64_t *words;      /* of all objects: (slot, frame, row, word) */
    int64_t room;         /* the number of words, which must match these sides */
    int64_t slots;        /* the number of objects that fit */
    int64_t frames, height, width;
    int64_t used;         /* the number of used slots */
    int32_t *slot_of;     /* the slot of each label, or -1 */
    int32_t *boxes;       /* for each slot: first row, row after the last, first word, word after the last */
    uint8_t *seen;        /* for each label including 0: whether it is in the latest frame */
    int64_t merged;       /* every label except 0 goes into the slot of label 1 */
} sj_frames;

/* A frame that is being packed. */
typedef struct {
    sj_frames *all;
    int64_t across, step, at;      /* words per row, words per slot, and the start of this row's words */
    int64_t y;
    uint64_t tail;                 /* the existing pixels of the last word */
    int count;                     /* the slots with pixels in this row or the one above */
    int32_t slots[LABELS];
    uint8_t is_listed[LABELS];
} packer;

static int is_block(const sj_frames *all)
{
    if (!all || !all->words || !all->slot_of || !all->boxes || !all->seen || all->height < 1 || all->width < 1
        || all->height > MOST_SIDE || all->width > MOST_SIDE || all->frames < 1 || all->frames > MOST_SIDE
        || all->slots < 1 || all->slots >= LABELS || all->used < 0 || all->used > all->slots)
        return 0;
    for (int label = 0; label < LABELS; label++)
        if (all->slot_of[label] < -1 || all->slot_of[label] >= all->used)
            return 0;
    int64_t across = (all->width + WORD - 1) / WORD;
    return all->slots <= all->room / all->frames / all->height / across /* which cannot overflow */
        && all->slots * all->frames * all->height * across == all->room;
}

static packer begin_frame(sj_frames *all, int64_t frame)
{
    int64_t across = (all->width + WORD - 1) / WORD, step = all->frames * all->height * across;
    packer one = {all, across, step, frame * all->height * across, 0, ~(uint64_t)0 >> (across * WORD - all->width), 0, {0}, {0}};
    memset(all->seen, 0, LABELS);
    return one;
}

/* Return the slot of a label in this row, or -1 if no slot is free. */
static int32_t take_slot(packer *one, uint8_t label)
{
    sj_frames *all = one->all;
    if (all->slot_of[label] < 0) {
        if (all->used >= all->slots)
            return -1;
        int32_t *box = all->boxes + 4 * all->used;
        box[0] = (int32_t)all->height, box[1] = 0, box[2] = (int32_t)one->across, box[3] = 0;
        all->slot_of[label] = (int32_t)all->used++;
    }
    int32_t slot = all->slot_of[label];
    if (!one->is_listed[slot]) {
        one->is_listed[slot] = 1;
        one->slots[one->count++] = slot;
    }
    return slot;
}

/* Extend the box of a slot to this row and to some words: from, to. */
static inline void extend_box(packer *one, int32_t slot, int64_t from, int64_t to)
{
    int32_t *box = one->all->boxes + 4 * slot;
    if (one->y < box[0]) box[0] = (int32_t)one->y;
    if (one->y >= box[1]) box[1] = (int32_t)one->y + 1;
    if (from < box[2]) box[2] = (int32_t)from;
    if (to > box[3]) box[3] = (int32_t)to;
}

/* Set the bits of the labels under a word, whose `valid` bits are pixels; return 0 if a label has no slot. */
static int pack_word(packer *one, const uint8_t *labels, uint64_t valid, int64_t column)
{
    sj_frames *all = one->all;
    uint64_t empty = equal(labels, 0), rest = ~empty & valid;
    if (empty & valid)
        all->seen[0] = 1;
    while (rest) {
        uint8_t label = labels[lowest(rest)];
        uint64_t bits = equal(labels, label) & valid;
        int32_t slot = take_slot(one, all->merged ? 1 : label);
        all->seen[label] = 1;
        if (slot < 0)
            return 0;
        all->words[slot * one->step + one->at + column] |= bits;
        extend_box(one, slot, column, column + 1);
        rest &= ~bits;
    }
    return 1;
}

/* Copy the words of the row above for all slots that have some. */
static void repeat_row(packer *one)
{
    for (int i = 0; i < one->count; i++) {
        uint64_t *words = one->all->words + one->slots[i] * one->step + one->at;
        memcpy(words, words - one->across, (size_t)one->across * sizeof *words);
    }
}

/* Keep the slots with pixels in this row and extend their boxes; if the row is not packed, leave it empty. */
static void end_row(packer *one, int is_packed)
{
    int count = one->count;
    one->count = 0;
    for (int i = 0; i < count; i++) {
        int32_t slot = one->slots[i], *box = one->all->boxes + 4 * slot;
        uint64_t *words = one->all->words + slot * one->step + one->at, any = 0;
        if (!is_packed)
            memset(words, 0, (size_t)one->across * sizeof *words);
        for (int64_t column = 0; column < one->across; column++)
            any |= words[column];
        one->is_listed[slot] = any != 0;
        if (!any)
            continue;
        one->slots[one->count++] = slot;
        if (one->y >= box[1])
            box[1] = (int32_t)one->y + 1;
    }
    one->y++;
    one->at += one->across;
}

static int repack_word(packer *one, const uint8_t *row, int64_t column)
{
    for (int i = 0; i < one->count; i++)
        one->all->words[one->slots[i] * one->step + one->at + column] = 0;
    uint64_t valid = column + 1 == one->across ? one->tail : ~(uint64_t)0;
    return pack_word(one, row + WORD * column, valid, column);
}

/* Pack the next row, of which whole words may be read. Marked words are packed, or all words if none is marked and
 * in the first row; other words are copied from the row above. Return whether all objects fit. */
static int pack_row(packer *one, const uint8_t *row, const uint64_t *marks)
{
    int is_packed = 1;
    if (one->y)
        repeat_row(one);
    for (int64_t first = 0; first < one->across; first += 64) {
        uint64_t bits = one->y && marks ? marks[first / 64] : ~(uint64_t)0;
        if (one->across - first < 64)
            bits &= ((uint64_t)1 << (one->across - first)) - 1;
        for (; bits && is_packed; bits &= bits - 1)
            is_packed = repack_word(one, row, first + lowest(bits));
    }
    end_row(one, is_packed);
    return is_packed;
}

static int pack_png(sj_frames *all, int64_t frame, sj_png *png)
{
    if (png->channels != 1 || png->depth > 8)
        return SJ_BAD_DATA;
    packer one = begin_frame(all, frame);
    int status = SJ_FINE, is_byte = png->depth == 8;
    uint8_t *labels = is_byte ? png->row : calloc((size_t)one.across, WORD);
    if (!labels)
        return SJ_NO_MEMORY;
    while (one.y < all->height && (status = sj_png_next(png)) == SJ_FINE) {
        if (!is_byte)
            widen(labels, png->row, all->width, png->depth);
        if (!pack_row(&one, labels, is_byte ? png->changed : NULL)) {
            status = SJ_FULL;
            break;
        }
    }
    if (!is_byte)
        free(labels);
    return status == SJ_FINE ? sj_png_next(png) : status;
}

/* Pack one frame from a PNG file: set each label's bits in `words`, which are zero before. */
SJ_EXPORT int sj_pack_png(sj_frames *all, int64_t frame, const uint8_t *data, int64_t length)
{
    if (!is_block(all) || frame < 0 || frame >= all->frames)
        return SJ_BAD_CALL;
    sj_png png;
    int status = sj_png_open(&png, data, length, all->height, all->width);
    if (status == SJ_FINE)
        status = pack_png(all, frame, &png);
    sj_png_close(&png);
    return status;
}

/* Pack one frame from one-byte labels. */
SJ_EXPORT int sj_pack_labels(sj_frames *all, int64_t frame, const uint8_t *labels, int64_t length)
{
    if (!is_block(all) || frame < 0 || frame >= all->frames || !labels || length != all->height * all->width)
        return SJ_BAD_CALL;
    packer one = begin_frame(all, frame);
    int64_t parts = (one.across + 63) / 64;
    uint64_t *marks = calloc((size_t)(parts + one.across * WORD / 8), 8);
    if (!marks)
        return SJ_NO_MEMORY;
    uint8_t *row = (uint8_t *)(marks + parts);
    int status = SJ_FINE;
    for (; one.y < all->height && status == SJ_FINE; labels += all->width) {
        sj_update_row(row, labels, all->width, marks);
        status = pack_row(&one, row, marks) ? SJ_FINE : SJ_FULL;
    }
    free(marks);
    return status;
}
