/* A PNG -> its checked chunks, and rows without filters.  Python reads unusual files, and words the errors. */
#include "png.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#define MOST_SIDE (1 << 24)
/* png.py has the same number. */
#define MOST_CHUNKS 4096
#define ADLER 65521
/* The bytes inflated at a time, in addition to the window and a row. */
#define BATCH (3 << 16)
/* Compiled once for each pixel size, which is then constant. */
#define INLINE static inline __attribute__((always_inline))

/* ── checksums ── */

/* How many bytes are added to a checksum at once, whose tables do not wait for each other. */
#define CRC_STEP 16

static uint32_t crc_tables[CRC_STEP][256];

__attribute__((constructor)) static void prepare_checksums(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        crc_tables[0][byte] = byte;
        for (int bit = 0; bit < 8; bit++)
            crc_tables[0][byte] = crc_tables[0][byte] >> 1 ^ (0xedb88320u & -(crc_tables[0][byte] & 1));
    }
    for (int i = 1; i < CRC_STEP; i++)
        for (int byte = 0; byte < 256; byte++)
            crc_tables[i][byte] = crc_tables[i - 1][byte] >> 8 ^ crc_tables[0][crc_tables[i - 1][byte] & 255];
}

/* Add bytes to a CRC, whose bits are not inverted at either end. */
static uint32_t add_to_crc(uint32_t crc, const uint8_t *bytes, int64_t count)
{
    for (; count >= CRC_STEP; bytes += CRC_STEP, count -= CRC_STEP) {
        uint64_t words[2] = {sj_load(bytes) ^ crc, sj_load(bytes + 8)};
        uint32_t even = 0, odd = 0;
        for (int i = 0; i < CRC_STEP; i += 2) {
            even ^= crc_tables[CRC_STEP - 1 - i][words[i / 8] >> 8 * (i % 8) & 255];
            odd ^= crc_tables[CRC_STEP - 2 - i][words[i / 8] >> 8 * (i % 8 + 1) & 255];
        }
        crc = even ^ odd;
    }
    for (; count; bytes++, count--)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ *bytes) & 255];
    return crc;
}

/* Add 64 bytes, followed by `rest` more, to Adler's two sums: of the bytes, and of all partial sums. */
static inline void add_sums(uint64_t sums[2], const uint8_t *bytes, int64_t rest)
{
    uint32_t sum = 0, total = 0;
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128(), step = _mm_set1_epi16(16);
    __m128i plain = zero, weighted = zero, high = _mm_set_epi16(57, 58, 59, 60, 61, 62, 63, 64);
    __m128i low = _mm_sub_epi16(high, _mm_set1_epi16(8));
    for (int i = 0; i < SJ_BLOCK; i += 16) {
        __m128i part = _mm_loadu_si128((const __m128i *)(bytes + i));
        plain = _mm_add_epi32(plain, _mm_sad_epu8(part, zero));
        weighted = _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpacklo_epi8(part, zero), high));
        weighted = _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpackhi_epi8(part, zero), low));
        high = _mm_sub_epi16(high, step), low = _mm_sub_epi16(low, step);
    }
    weighted = _mm_add_epi32(weighted, _mm_shuffle_epi32(weighted, 0x4e));
    total = (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(weighted, _mm_shuffle_epi32(weighted, 0xb1)));
    sum = (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(plain, _mm_shuffle_epi32(plain, 0x4e)));
#else
    for (uint32_t i = 0; i < SJ_BLOCK; i++)
        sum += bytes[i], total += (SJ_BLOCK - i) * bytes[i];
#endif
    sums[0] += sum;
    sums[1] += total + (uint64_t)rest * sum; /* wraps around: zeros follow the last byte */
}

/* ── rows ── */

/* A block of bytes; the last block is passed separately, with zeros after the row. */
static inline const uint8_t *block_of(const uint8_t *bytes, const uint8_t *last, int64_t block, int64_t blocks)
{
    return block + 1 == blocks ? last : bytes + SJ_BLOCK * block;
}

static int64_t take_last(uint8_t *last, const uint8_t *bytes, int64_t count)
{
    int64_t blocks = (count + SJ_BLOCK - 1) / SJ_BLOCK, at = SJ_BLOCK * (blocks - 1);
    memset(last, 0, SJ_BLOCK);
    memcpy(last, bytes + at, (size_t)(count - at));
    return blocks;
}

/* Return whether a block differs from another, or from zeros if there is none. */
INLINE uint64_t differs(const uint8_t *bytes, const uint8_t *others)
{
    uint64_t any = 0;
    for (int i = 0; i < SJ_BLOCK; i += 8)
        any |= others ? sj_load(bytes + i) ^ sj_load(others + i) : sj_load(bytes + i);
    return any != 0;
}

/* Mark the blocks of bytes that differ from others, or from zeros if there are none; return their number. */
INLINE int64_t mark(uint64_t *marks, const uint8_t *bytes, const uint8_t *last, const uint8_t *others, int64_t blocks)
{
    int64_t count = 0;
    for (int64_t first = 0; first < blocks; first += 64) {
        int64_t end = first + 64 < blocks ? first + 64 : blocks;
        uint64_t bits = 0;
        for (int64_t block = end - 1; block >= first; block--) {
            const uint8_t *one = block + 1 == blocks ? last : bytes + SJ_BLOCK * block;
            bits = bits << 1 | differs(one, others ? others + SJ_BLOCK * block : NULL);
        }
        marks[first / 64] = bits;
        count += sj_ones(bits);
    }
    return count;
}

/* For each marked block. */
#define EACH(block, marks, blocks) \
    for (int64_t part_ = 0; part_ < ((blocks) + 63) / 64; part_++) \
        for (uint64_t bits_ = (marks)[part_]; bits_; bits_ &= bits_ - 1) \
            for (int64_t block = 64 * part_ + __builtin_ctzll(bits_), once_ = 1; once_; once_ = 0)

int sj_update_row(uint8_t *row, const uint8_t *bytes, int64_t count, uint64_t *changed)
{
    uint8_t last[SJ_BLOCK];
    int64_t blocks = take_last(last, bytes, count);
    int64_t marked = mark(changed, bytes, last, row, blocks);
    EACH(block, changed, blocks)
        memcpy(row + SJ_BLOCK * block, block_of(bytes, last, block, blocks), SJ_BLOCK);
    return marked != 0;
}

/* Count the leading zero bytes, eight at a time: most residuals are zero. */
static inline int64_t zeros(const uint8_t *bytes, int64_t count)
{
    int64_t i = 0;
    while (i + 32 <= count && !(sj_load(bytes + i) | sj_load(bytes + i + 8) | sj_load(bytes + i + 16) | sj_load(bytes + i + 24)))
        i += 32;
    while (i + 8 <= count && !sj_load(bytes + i))
        i += 8;
    return i;
}

/* Repeat the pixel on the left. */
INLINE void repeat_left(uint8_t *row, int64_t count, const int step)
{
    int64_t i = 0;
    if (step == 1)
        memset(row, row[-1], (size_t)count);
    else if (step != 3) {
        uint8_t pixels[8];
        for (int j = 0; j < 8; j++)
            pixels[j] = row[j % step - step];
        for (; i + 8 <= count; i += 8)
            memcpy(row + i, pixels, 8);
    }
    for (; step != 1 && i < count; i++)
        row[i] = row[i - step];
}

/* Undo "Sub". */
INLINE void add_left(uint8_t *row, const uint8_t *residuals, int64_t count, const int step)
{
    for (int64_t i = 0; i < count;) {
        int64_t plain = zeros(residuals + i, count - i), end = i + plain + 8 < count ? i + plain + 8 : count;
        repeat_left(row + i, plain, step);
        for (i += plain; i < end; i++)
            row[i] = (uint8_t)(residuals[i] + row[i - step]);
    }
}

/* Undo "Average". */
INLINE void add_average(uint8_t *row, const uint8_t *residuals, const uint8_t *above, int64_t count, const int step)
{
    for (int64_t i = 0; i < count; i++)
        row[i] = (uint8_t)(residuals[i] + ((row[i - step] + above[i]) >> 1));
}

static int distance(int a, int b) { return a > b ? a - b : b - a; }

/* Return PNG's Paeth prediction from the bytes to the left, above, and above the left. */
static uint8_t guess(uint8_t left, uint8_t up, uint8_t corner)
{
    int sum = left + up - corner, a = distance(sum, left), b = distance(sum, up), c = distance(sum, corner);
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

/* Count the leading bytes that equal the byte one pixel before, eight at a time. */
INLINE int64_t constant(const uint8_t *bytes, int64_t count, const int step)
{
    int64_t i = 0;
    while (i + 8 <= count && sj_load(bytes + i) == sj_load(bytes + i - step))
        i += 8;
    return i;
}

/* Undo "Paeth". While residuals are zero, a row that equals the row above continues to equal it, and repeats its
 * left pixel where the row above is constant. */
INLINE void add_guesses(uint8_t *row, const uint8_t *residuals, const uint8_t *above, int64_t count, const int step)
{
    for (int64_t i = 0; i < count;) {
        int64_t plain = zeros(residuals + i, count - i), end = i + 8 < count ? i + 8 : count;
        if (plain && memcmp(row + i - step, above + i - step, (size_t)step) == 0)
            memcpy(row + i, above + i, (size_t)plain);
        else {
            plain = constant(above + i, plain, step);
            repeat_left(row + i, plain, step);
        }
        i += plain;
        if (!plain)
            for (; i < end; i++)
                row[i] = (uint8_t)(residuals[i] + guess(row[i - step], above[i], above[i - step]));
    }
}

/* Undo the filter of a row with this pixel size; an empty pixel precedes `row` and `above`. */
INLINE void undo(uint8_t *row, int filter, const uint8_t *residuals, const uint8_t *above, int64_t count, const int step)
{
    if (filter == 1)
        add_left(row, residuals, count, step);
    else if (filter == 3)
        add_average(row, residuals, above, count, step);
    else
        add_guesses(row, residuals, above, count, step);
}

static void undo_row(uint8_t *row, int filter, const uint8_t *residuals, const uint8_t *above, int64_t count, int pixel_bytes)
{
    switch (pixel_bytes) {
    case 1: undo(row, filter, residuals, above, count, 1); break;
    case 2: undo(row, filter, residuals, above, count, 2); break;
    case 3: undo(row, filter, residuals, above, count, 3); break;
    default: undo(row, filter, residuals, above, count, 4);
    }
}

/* Read a row from its inflated bytes; return whether its filter exists. */
static int read_row(sj_png *png, const uint8_t *source)
{
    uint8_t last[SJ_BLOCK], *row = png->row;
    const uint8_t *bytes = source + 1;
    int64_t count = png->row_bytes, blocks = png->blocks;
    int filter = source[0], was_plain = png->row_is_plain;
    if (filter > 4)
        return 0;
    png->row_is_plain = !filter;
    if (filter == 0)
        png->has_changed = sj_update_row(row, bytes, count, png->changed);
    if (filter || png->has_changed || !was_plain) {
        take_last(last, bytes, count);
        if (filter)
            png->has_changed = mark(png->changed, bytes, last, NULL, blocks) != 0;
        png->row_sums[0] = (uint64_t)filter, png->row_sums[1] = (uint64_t)(filter * (count + 1));
        for (int64_t block = 0; block < blocks; block++)
            if (!filter || png->changed[block / 64] >> block % 64 & 1)
                add_sums(png->row_sums, block_of(bytes, last, block, blocks), count - SJ_BLOCK * (block + 1));
    }
    if (filter == 2)
        EACH(block, png->changed, blocks) {
            const uint8_t *residuals = block_of(bytes, last, block, blocks);
            for (int i = 0; i < SJ_BLOCK; i++)
                row[SJ_BLOCK * block + i] = (uint8_t)(row[SJ_BLOCK * block + i] + residuals[i]);
        }
    else if (filter) {
        undo_row(png->space, filter, bytes, row, count, png->pixel_bytes);
        png->has_changed = sj_update_row(row, png->space, count, png->changed);
    }
    png->checksum[1] = (png->checksum[1] + (uint64_t)(count + 1) * png->checksum[0] + png->row_sums[1]) % ADLER;
    png->checksum[0] = (png->checksum[0] + png->row_sums[0]) % ADLER;
    return 1;
}

/* Inflate until the next row has this many bytes, or until the stream ends. */
static int inflate_row(sj_png *png, int64_t count)
{
    if (png->at - png->start >= count || png->stream.has_ended)
        return SJ_FINE;
    if (png->at >= png->limit) {
        int64_t gone = png->at - SJ_WINDOW < png->start ? png->at - SJ_WINDOW : png->start;
        memmove(png->window, png->window + gone, (size_t)(png->at - gone));
        png->start -= gone, png->at -= gone;
    }
    return sj_inflate_some(&png->stream, png->window, &png->at, png->limit);
}

int sj_png_next(sj_png *png)
{
    int64_t step = png->row_bytes + 1, count = png->y < png->height ? step : 1;
    if (inflate_row(png, count) != SJ_FINE)
        return SJ_BAD_DATA;
    if (png->y == png->height) {
        uint32_t checksum = (uint32_t)(png->checksum[1] << 16 | png->checksum[0]);
        return png->at == png->start && sj_inflate_matches(&png->stream, checksum) ? SJ_FINE : SJ_BAD_DATA;
    }
    if (png->at - png->start < step)
        return SJ_BAD_DATA;
    png->start += step, png->y++;
    return read_row(png, png->window + png->start - step) ? SJ_FINE : SJ_BAD_DATA;
}

/* ── chunks ── */

static uint32_t number_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int read_header(sj_png *png, const uint8_t *body)
{
    static const int channels[] = {1, 0, 3, 1, 0, 0, 4};
    int depth = body[8], colour = body[9];
    png->depth = depth;
    png->channels = colour < 7 ? channels[colour] : 0;
    if (number_at(body) != png->width || number_at(body + 4) != png->height || !png->channels)
        return 0;
    if (depth == 16 ? colour != 0 : depth != 8 && (png->channels != 1 || (depth != 1 && depth != 2 && depth != 4)))
        return 0;
    png->pixel_bytes = depth == 16 ? 2 : png->channels;
    return !body[10] && !body[11] && !body[12];
}

/* Find the compressed pixels, in `data` if one chunk holds them, else copied; return their length, or 0. */
static int64_t find_pixels(sj_png *png, const uint8_t *data, int64_t length, const uint8_t **pixels)
{
    int64_t at = 8, total = 0;
    int headers = 0;
    if (length < at || memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0)
        return 0;
    for (int chunk = 0; chunk < MOST_CHUNKS; chunk++) {
        if (length - at < 12)
            return 0;
        int64_t size = number_at(data + at);
        const uint8_t *kind = data + at + 4, *body = kind + 4;
        if (size > length - at - 12)
            return 0;
        int is_header = !memcmp(kind, "IHDR", 4), has_pixels = !memcmp(kind, "IDAT", 4);
        if ((is_header || has_pixels) && ~add_to_crc(0xffffffffu, kind, size + 4) != number_at(body + size))
            return 0;
        if (is_header && (headers++ || size != 13 || !read_header(png, body)))
            return 0;
        if (!headers)
            return 0;
        if (has_pixels && size) {
            if (!total)
                *pixels = body;
            else if (!png->joined) {
                png->joined = malloc((size_t)length);
                if (!png->joined)
                    return 0;
                memcpy(png->joined, *pixels, (size_t)total);
                *pixels = png->joined;
            }
            if (png->joined)
                memcpy(png->joined + total, body, (size_t)size);
            total += size;
        }
        if (!memcmp(kind, "IEND", 4))
            return total;
        at += size + 12;
    }
    return 0;
}

int sj_png_open(sj_png *png, const uint8_t *data, int64_t length, int64_t height, int64_t width)
{
    const uint8_t *pixels = NULL;
    png->memory = png->joined = NULL;
    if (!data || length < 0 || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE)
        return SJ_BAD_CALL;
    png->height = height, png->width = width;
    int64_t packed = find_pixels(png, data, length, &pixels);
    if (!packed || sj_inflate_begin(&png->stream, pixels, packed) != SJ_FINE)
        return SJ_BAD_DATA;
    png->row_bytes = (width * png->depth * png->channels + 7) / 8;
    png->blocks = (png->row_bytes + SJ_BLOCK - 1) / SJ_BLOCK;
    png->limit = SJ_WINDOW + BATCH + png->row_bytes + 1;
    if ((png->row_bytes + 1) * height < png->limit)
        png->limit = (png->row_bytes + 1) * height + 1;
    int64_t marks = (png->blocks + 63) / 64 * (int64_t)sizeof *png->changed, space = SJ_BLOCK * (png->blocks + 1);
    png->memory = malloc((size_t)(marks + 2 * space + png->limit + SJ_SLACK));
    if (!png->memory)
        return SJ_NO_MEMORY;
    memset(png->memory, 0, (size_t)(marks + 2 * space));
    png->changed = (uint64_t *)png->memory;
    png->row = png->memory + marks + SJ_BLOCK; /* an empty pixel precedes it */
    png->space = png->row + space;
    png->window = png->memory + marks + 2 * space;
    png->y = png->start = png->at = 0;
    png->has_changed = png->row_is_plain = 0;
    png->checksum[0] = 1, png->checksum[1] = 0;
    return SJ_FINE;
}

void sj_png_close(sj_png *png)
{
    free(png->memory);
    free(png->joined);
}
