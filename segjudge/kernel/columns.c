/* The non-zero pixels of an image -> their run lengths down its columns, as text, and their numbers in given runs. */
#include "kernel.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The maximum side of an image. */
#define MOST_SIDE (1 << 24)
/* The maximum pixels of an image in which pixels are counted by run. */
#define MOST_COUNTED ((int64_t)UINT32_MAX)
/* The columns that are taken together. */
#define COLUMNS 64

/* Return flags of the set pixels among some of a row. */
static uint64_t flags_of(const uint8_t *row, int64_t count)
{
    uint64_t flags = 0;
#ifdef __SSE2__
    for (int i = 0; i < COLUMNS && count == COLUMNS; i += 16) {
        __m128i part = _mm_loadu_si128((const __m128i *)(row + i));
        uint64_t empty = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(part, _mm_setzero_si128()));
        flags |= (empty ^ 0xffff) << i;
    }
    if (count == COLUMNS)
        return flags;
#endif
    for (int64_t i = 0; i < count; i++)
        flags |= (uint64_t)(row[i] != 0) << i;
    return flags;
}

/* Exchange rows and columns of a square of bits: bit y of word x becomes bit x of word y. */
static void transpose(uint64_t words[COLUMNS])
{
    uint64_t mask = 0xffffffffu;
    for (int step = COLUMNS / 2; step; step /= 2, mask ^= mask << step)
        for (int i = 0; i < COLUMNS; i = (i + step + 1) & ~step) {
            uint64_t swap = (words[i] >> step ^ words[i + step]) & mask;
            words[i] ^= swap << step;
            words[i + step] ^= swap;
        }
}

/* The flags of an image's pixels, row by row, the words in use, and some columns of flags: each has `tall` words, with
 * zeros after its rows. */
typedef struct {
    uint64_t *flags, *used, *columns;
    int64_t height, across, tall;
} rows_of_flags;

/* Flag the pixels of an image that are not 0; return whether there is memory, to be freed with `flags`. */
static int flag_rows(rows_of_flags *out, const uint8_t *pixels, int64_t height, int64_t width)
{
    int64_t across = (width + COLUMNS - 1) / COLUMNS, tall = (height + COLUMNS - 1) / COLUMNS;
    uint64_t *flags = malloc((size_t)(across * (height + 1) + COLUMNS * tall) * sizeof *flags);
    uint64_t *used = flags + across * height;
    if (!flags)
        return 0;
    *out = (rows_of_flags){flags, used, used + across, height, across, tall};
    memset(used, 0, (size_t)across * sizeof *used);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x += COLUMNS) {
            uint64_t row = flags_of(pixels + y * width + x, width - x < COLUMNS ? width - x : COLUMNS);
            flags[y * across + x / COLUMNS] = row, used[x / COLUMNS] |= row;
        }
    return 1;
}

/* Take the columns of one word of each row. */
static void take_columns(rows_of_flags *from, int64_t word)
{
    uint64_t words[COLUMNS], *columns = from->columns;
    int64_t tall = from->tall;
    memset(columns, 0, (size_t)(COLUMNS * tall) * sizeof *columns);
    for (int64_t part = 0; part < tall; part++) {
        int64_t first = COLUMNS * part, count = from->height - first < COLUMNS ? from->height - first : COLUMNS;
        uint64_t any = 0;
        for (int64_t y = 0; y < COLUMNS; y++)
            any |= words[y] = y < count ? from->flags[(first + y) * from->across + word] : 0;
        if (!any)
            continue;
        transpose(words);
        for (int64_t x = 0; x < COLUMNS; x++)
            columns[x * tall + part] = words[x];
    }
}

/* The runs of pixels being written: where the last one ends, whether the pixel before is set, and the set ones. */
typedef struct {
    sj_writer writer;
    int64_t last, set;
    uint64_t carry;
} sequence;

/* Write the runs that end before or in the next pixels, up to 64 from a place on; return whether they fit. */
static inline int put_pixels(sequence *to, uint64_t bits, int64_t place, int64_t count)
{
    uint64_t changes = (bits ^ (bits << 1 | to->carry)) & (~(uint64_t)0 >> (COLUMNS - count));
    to->carry = bits >> (count - 1) & 1;
    to->set += sj_ones(bits);
    for (; changes; changes &= changes - 1) {
        int64_t end = place + __builtin_ctzll(changes);
        if (!sj_put_run(&to->writer, end - to->last))
            return 0;
        to->last = end;
    }
    return 1;
}

/* Write the last run of an image, and the numbers of characters and pixels; return a status. */
static int end_runs(sequence *to, int status, const uint8_t *text, int64_t pixels, int64_t *length, int64_t *area)
{
    if (status == SJ_FINE && to->last < pixels && !sj_put_run(&to->writer, pixels - to->last))
        status = SJ_FULL;
    *length = to->writer.at - text, *area = to->set;
    return status;
}

/* Write the runs of an image's non-zero pixels, counted down its columns, as text, and their number of pixels.
 *
 * Return SJ_FULL if there is too little space. */
SJ_EXPORT int sj_encode(
    const uint8_t *pixels, int64_t height, int64_t width, uint8_t *text, int64_t room, int64_t *length, int64_t *area)
{
    if (!pixels || !text || !length || !area || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE
        || room < 0)
        return SJ_BAD_CALL;
    rows_of_flags rows;
    if (!flag_rows(&rows, pixels, height, width))
        return SJ_NO_MEMORY;
    int64_t tall = rows.tall;
    sequence to = {{text, text + room, 0, {0, 0}}, 0, 0, 0};
    int status = SJ_FINE;
    for (int64_t x = 0; x < width && status == SJ_FINE; x++) {
        if (x % COLUMNS == 0 && !rows.used[x / COLUMNS] && !to.carry) {
            x += COLUMNS - 1;
            continue;
        }
        if (x % COLUMNS == 0)
            take_columns(&rows, x / COLUMNS);
        for (int64_t part = 0; part < tall && status == SJ_FINE; part++) {
            int64_t first = COLUMNS * part, count = height - first < COLUMNS ? height - first : COLUMNS;
            uint64_t bits = rows.columns[x % COLUMNS * tall + part];
            status = put_pixels(&to, bits, x * height + first, count) ? SJ_FINE : SJ_FULL;
        }
    }
    free(rows.flags);
    return end_runs(&to, status, text, height * width, length, area);
}

/* Write the runs of set bits, and their number; SJ_FULL if there is too little space. */
SJ_EXPORT int sj_write_bits(
    const uint64_t *bits, int64_t pixels, uint8_t *text, int64_t room, int64_t *length, int64_t *area)
{
    if (!bits || !text || !length || !area || pixels < 1 || pixels > SJ_MOST_PIXELS || room < 0)
        return SJ_BAD_CALL;
    sequence to = {{text, text + room, 0, {0, 0}}, 0, 0, 0};
    int status = SJ_FINE;
    for (int64_t first = 0; first < pixels && status == SJ_FINE; first += COLUMNS) {
        int64_t count = pixels - first < COLUMNS ? pixels - first : COLUMNS;
        uint64_t word = bits[first / COLUMNS] & ~(uint64_t)0 >> (COLUMNS - count);
        status = put_pixels(&to, word, first, count) ? SJ_FINE : SJ_FULL;
    }
    return end_runs(&to, status, text, pixels, length, area);
}

/* The set pixels of an image before each word of its columns, and the words. */
typedef struct {
    uint64_t *words;
    uint32_t *before;
    uint32_t height, tall;
} ranks;

/* Return the number of set pixels before a pixel, counted down the columns. */
static inline int64_t rank_of(const ranks *all, uint32_t pixel)
{
    uint32_t column = pixel / all->height, row = pixel - column * all->height;
    size_t word = (size_t)column * all->tall + row / 64;
    return all->before[word] + sj_ones(all->words[word] & (((uint64_t)1 << row % 64) - 1));
}

/* Rank the pixels of an image; return their number. */
static uint32_t rank_pixels(rows_of_flags *rows, ranks *all, int64_t width)
{
    uint32_t total = 0;
    uint64_t *words = all->words;
    uint32_t *before = all->before;
    size_t size = (size_t)(COLUMNS * rows->tall);
    for (int64_t x = 0; x < width; x += COLUMNS, words += size, before += size) {
        if (!rows->used[x / COLUMNS]) {
            memset(words, 0, size * sizeof *words);
            for (size_t i = 0; i < size; i++)
                before[i] = total;
            continue;
        }
        rows->columns = words;
        take_columns(rows, x / COLUMNS);
        for (size_t i = 0; i < size; i++) {
            before[i] = total;
            total += (uint32_t)sj_ones(words[i]);
        }
    }
    *words = 0, *before = total; /* for runs that end with the last pixel */
    return total;
}

/* Count the non-zero pixels of an image in each group of runs, and all of them.
 *
 * Runs are pixels from, to, counted down the columns; groups lie between two bounds. */
SJ_EXPORT int sj_count_inside(
    const uint8_t *pixels, int64_t height, int64_t width, const int64_t *runs, const int64_t *bounds, int64_t count,
    int64_t length, int64_t *inside, int64_t *area)
{
    if (!pixels || !runs || !bounds || !inside || !area || height < 1 || width < 1 || height > MOST_SIDE
        || width > MOST_COUNTED / height || !sj_are_bounds(bounds, count, length))
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < bounds[count]; i++)
        if (runs[2 * i] < 0 || runs[2 * i] > runs[2 * i + 1] || runs[2 * i + 1] > height * width)
            return SJ_BAD_CALL;
    rows_of_flags rows;
    if (!flag_rows(&rows, pixels, height, width))
        return SJ_NO_MEMORY;
    size_t words = (size_t)(rows.across * COLUMNS * rows.tall + 1);
    ranks all = {malloc(words * sizeof *all.words), malloc(words * sizeof *all.before), (uint32_t)height,
                 (uint32_t)rows.tall};
    int status = all.words && all.before ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE) {
        int64_t first = 0, last = rows.across; /* the words of rows in use */
        *area = rank_pixels(&rows, &all, width);
        while (first < last && !rows.used[first])
            first++;
        while (first < last && !rows.used[last - 1])
            last--;
        for (int64_t i = 0; i < count; i++) {
            inside[i] = 0;
            for (int64_t j = bounds[i]; j < bounds[i + 1]; j++)
                if (runs[2 * j + 1] > first * COLUMNS * height && runs[2 * j] < last * COLUMNS * height)
                    inside[i] += rank_of(&all, (uint32_t)runs[2 * j + 1]) - rank_of(&all, (uint32_t)runs[2 * j]);
        }
    }
    free(all.words);
    free(all.before);
    free(rows.flags);
    return status;
}
