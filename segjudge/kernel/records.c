/* The usual records of instance masks, in images or videos, read from JSON into columns of whole numbers. */
#include "kernel.h"

#include <string.h>

/* Digits that an int64 holds whatever they are. */
#define MOST_DIGITS 18

enum { IMAGE, CATEGORY, DIGITS, DECIMALS, SCORE, SCORE_END, HEIGHT, WIDTH, COUNTS, COUNTS_END, FAULT, AREA, COLUMNS };

/* Larger images and longer texts are unusual. */
#define MOST_SIDE (1 << 24)
#define LONGEST_TEXT (1 << 16)

typedef struct {
    const uint8_t *text;
    int64_t at, length;
    uint8_t *masks; /* the texts of all masks, without escapes */
    int64_t written;
    int64_t *frames; /* of videos: height, width and where the text ends of the masks of all frames, one after the other */
    int64_t room, used;
} source;

static void skip(source *from)
{
    while (from->at < from->length) {
        uint8_t one = from->text[from->at];
        if (one != ' ' && one != '\n' && one != '\r' && one != '\t')
            return;
        from->at++;
    }
}

static int peek(const source *from)
{
    return from->at < from->length ? from->text[from->at] : -1;
}

/* Go on after a character, and the blanks around it; return whether it is there. */
static int take(source *from, char wanted)
{
    skip(from);
    if (peek(from) != wanted)
        return 0;
    from->at++;
    skip(from);
    return 1;
}

/* Read digits, and add them to the value while it can hold them; return how many there are. */
static int64_t take_digits(source *from, int64_t *value, int64_t *digits)
{
    int64_t first = from->at;
    for (; peek(from) >= '0' && peek(from) <= '9'; from->at++)
        if (++*digits <= MOST_DIGITS)
            *value = 10 * *value + (from->text[from->at] - '0');
    return from->at - first;
}

/* Read the digits in front of a number's point: not more zeros than one. */
static int64_t take_front(source *from, int64_t *value, int64_t *digits)
{
    int zero = peek(from) == '0';
    int64_t count = take_digits(from, value, digits);
    return zero && count > 1 ? 0 : count;
}

static int take_whole(source *from, int64_t *value)
{
    int negative = peek(from) == '-';
    int64_t digits = 0;
    from->at += negative;
    *value = 0;
    if (!take_front(from, value, &digits) || digits > MOST_DIGITS)
        return 0;
    if (negative)
        *value = -*value;
    return peek(from) != '.' && peek(from) != 'e' && peek(from) != 'E';
}

static int take_exponent(source *from)
{
    int64_t none = 0, digits = 0;
    from->at++;
    from->at += peek(from) == '+' || peek(from) == '-';
    return take_digits(from, &none, &digits) > 0;
}

/* Read a number: its place, and where that is simple, its digits and how many of them are decimals; -1 elsewhere. */
static int take_score(source *from, int64_t *row)
{
    row[SCORE] = from->at;
    int negative = peek(from) == '-', exponent;
    int64_t value = 0, digits = 0;
    from->at += negative;
    int64_t whole = take_front(from, &value, &digits);
    if (!whole)
        return 0;
    if (peek(from) == '.') {
        from->at++;
        if (!take_digits(from, &value, &digits))
            return 0;
    }
    exponent = peek(from) == 'e' || peek(from) == 'E';
    if (exponent && !take_exponent(from))
        return 0;
    int simple = !exponent && digits <= MOST_DIGITS && value <= (int64_t)1 << 53 && !(negative && !value);
    row[SCORE_END] = from->at;
    row[DIGITS] = negative ? -value : value;
    row[DECIMALS] = simple ? digits - whole : -1;
    return 1;
}

/* Read a text of plain characters; its place. */
static int take_text(source *from, int64_t *start, int64_t *end)
{
    if (peek(from) != '"')
        return 0;
    *start = ++from->at;
    while (from->at < from->length) {
        uint8_t one = from->text[from->at];
        if (one == '"') {
            *end = from->at++;
            return 1;
        }
        if (one < 0x20 || one > 0x7e || one == '\\')
            return 0;
        from->at++;
    }
    return 0;
}

/* Copy a mask's text, in which a backslash may stand for itself, written twice. */
static int take_counts(source *from, int64_t *row)
{
    uint8_t *out = from->masks + from->written;
    int odd = 0;
    if (peek(from) != '"')
        return 0;
    from->at++;
    row[COUNTS] = from->written;
    const uint8_t *text = from->text + from->at, *stop = text;
    const uint8_t *quote = memchr(text, '"', (size_t)(from->length - from->at));
    for (; quote && stop != quote; text = stop + 2) {
        stop = memchr(text, '\\', (size_t)(quote - text));
        stop = stop ? stop : quote;
        for (const uint8_t *one = text; one < stop; one++)
            odd |= (*one < 0x20) | (*one > 0x7e);
        memcpy(out, text, (size_t)(stop - text));
        out += stop - text;
        if (stop != quote && stop[1] != '\\') /* a quote behind a backslash too */
            return 0;
        if (stop != quote)
            *out++ = '\\';
    }
    if (!quote)
        return 0;
    from->at = quote + 1 - from->text;
    from->written = out - from->masks;
    row[COUNTS_END] = from->written;
    return !odd && from->written - row[COUNTS] <= LONGEST_TEXT;
}

static int is_key(const source *from, int64_t start, int64_t end, const char *key)
{
    return (size_t)(end - start) == strlen(key) && !memcmp(from->text + start, key, (size_t)(end - start));
}

/* Read {"size": [height, width], "counts": "…"}, each once, in any order. */
static int take_mask(source *from, int64_t *row)
{
    int seen = 0;
    if (!take(from, '{'))
        return 0;
    do {
        int64_t start, end;
        if (!take_text(from, &start, &end) || !take(from, ':'))
            return 0;
        if (is_key(from, start, end, "size") && !(seen & 1)) {
            seen |= 1;
            if (!take(from, '[') || !take_whole(from, row + HEIGHT) || !take(from, ',')
                || !take_whole(from, row + WIDTH) || !take(from, ']'))
                return 0;
        } else if (is_key(from, start, end, "counts") && !(seen & 2)) {
            seen |= 2;
            if (!take_counts(from, row))
                return 0;
        } else
            return 0;
    } while (take(from, ','));
    if (seen != 3 || !take(from, '}') || row[HEIGHT] < 0 || row[WIDTH] < 0 || row[HEIGHT] > MOST_SIDE
        || row[WIDTH] > MOST_SIDE)
        return 0;
    return 1;
}

static int take_checked_mask(source *from, int64_t *row)
{
    if (!take_mask(from, row))
        return 0;
    const uint8_t *counts = from->masks + row[COUNTS];
    sj_ending ending;
    row[FAULT] = sj_check_mask(counts, row[COUNTS_END] - row[COUNTS], row[HEIGHT] * row[WIDTH], row + AREA, &ending);
    return 1;
}

static int take_null(source *from)
{
    if (from->length - from->at < 4 || memcmp(from->text + from->at, "null", 4))
        return 0;
    from->at += 4;
    return 1;
}

/* Read a list with a mask, or null, for each frame: where its frames are. */
static int take_frames(source *from, int64_t *row)
{
    row[COUNTS] = from->used;
    if (!take(from, '['))
        return 0;
    do {
        int64_t mask[COLUMNS];
        if (from->used == from->room)
            return 0;
        if (take_null(from))
            mask[HEIGHT] = mask[WIDTH] = -1;
        else if (!take_mask(from, mask))
            return 0;
        int64_t *frame = from->frames + 3 * from->used++;
        frame[0] = mask[HEIGHT], frame[1] = mask[WIDTH], frame[2] = from->written;
    } while (take(from, ','));
    row[COUNTS_END] = from->used;
    return take(from, ']');
}

static int take_value(source *from, int64_t start, int64_t end, int64_t *row, int *seen)
{
    static const char *const keys[][4] = {
        {"image_id", "category_id", "score", "segmentation"}, {"video_id", "category_id", "score", "segmentations"}};
    for (int key = 0; key < 4; key++)
        if (is_key(from, start, end, keys[from->frames != NULL][key])) {
            if (*seen & 1 << key)
                return 0;
            *seen |= 1 << key;
            return key == 0 ? take_whole(from, row + IMAGE) : key == 1 ? take_whole(from, row + CATEGORY)
                 : key == 2 ? take_score(from, row)
                 : from->frames ? take_frames(from, row) : take_checked_mask(from, row);
        }
    return 0;
}

static int take_record(source *from, int64_t *row)
{
    int seen = 0;
    if (!take(from, '{'))
        return 0;
    do {
        int64_t start, end;
        if (!take_text(from, &start, &end) || !take(from, ':') || !take_value(from, start, end, row, &seen))
            return 0;
    } while (take(from, ','));
    return seen == 15 && take(from, '}');
}

/* Read the records at the start of a text, each with a comma behind it, into rows of twelve numbers: image, category,
 * digits and decimals of the score, where it stands, height, width, where the mask's text stands in `masks` (as long as
 * the text), what is wrong with it, its area.
 *
 * With `frames` it is records of videos, of which a row says which frames it has, in place of a text, and nothing of sizes
 * and areas.  Each of the frames, for which there is so much room, has three numbers: height and width, or -1 where it
 * has no mask, and where its text ends.
 *
 * `end` says where the text goes on with what is not complete, or not the usual form, JSON or not: Python's parser decides
 * what that is.  It is bad data where nothing is read.
 */
SJ_EXPORT int sj_records(
    const uint8_t *text, int64_t length, int64_t most, int64_t *rows, uint8_t *masks, int64_t *count, int64_t *frames,
    int64_t room, int64_t *used, int64_t *end)
{
    if (!text || length < 0 || most < 0 || !rows || !masks || !count || room < 0 || !used || !end)
        return SJ_BAD_CALL;
    source from = {text, 0, length, masks, 0, frames, room, 0};
    *count = *used = *end = 0;
    while (*count < most && take_record(&from, rows + COLUMNS * *count) && take(&from, ',')) {
        ++*count;
        *used = from.used, *end = from.at;
    }
    return *count ? SJ_FINE : SJ_BAD_DATA;
}
