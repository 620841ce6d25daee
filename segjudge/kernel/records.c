/* JSON records and annotations of instances, in images or videos -> columns of whole numbers. */
#include "checks.h"

#include <stdlib.h>
#include <string.h>

/* The number of digits that always fit an int64, and that fit a uint64. */
#define MOST_DIGITS 18
#define MOST_FIGURES 19
/* The maximum length of numbers that are read the fast way, with a point. */
#define MOST_SHORT 24

/* Limits of the usual form: sides of images, lengths of texts, depth, digits, and unknown keys. */
#define MOST_SIDE (1 << 24)
#define LONGEST_TEXT (1 << 23)
#define DEEPEST 16
#define LONGEST_NUMBER 1000
#define MOST_KEYS 256

enum {
    IMAGE, CATEGORY, SCORE, HEIGHT, WIDTH, COUNTS, COUNTS_END, FAULT, AREA, BOXED, LEFT, TOP, ACROSS, DOWN, RING, RING_END, COLUMNS
};

/* The part of a record that is read. */
enum { MASK, FRAMES, BOX, POINTS, ANNOTATION };

/* The kind of `bbox`: absent, null or an empty list, four numbers, or anything else. */
enum { NO_BOX, EMPTY_BOX, WHOLE_BOX, OTHER_BOX };

/* The number of values of an annotation outside its row, and of a frame. */
#define OF_ANNOTATION 4
#define OF_FRAME 3

typedef struct {
    const uint8_t *text;
    int64_t at, length;
    int shape;
    uint8_t *masks; /* the texts of all masks, without escapes */
    int64_t written, letters;
    int64_t *frames; /* for videos: height, width and end of text of each frame's mask; for annotations: id, crowd
                      * flag, number of marked keypoints, and bits of its keys */
    int64_t room, used;
    double *numbers; /* corners of polygons, or keypoints, one record after the other; keypoints of annotations stand at
                      * the end, where the last comes first, and make the room smaller */
    int64_t numbers_room, numbers_used;
    int64_t *rings; /* the end of each ring's numbers */
    int64_t rings_room, rings_used;
    int64_t points; /* the numbers of a record's keypoints; -1 before the first */
} source;

static inline int is_blank(uint8_t one)
{
    return one == ' ' || one == '\n' || one == '\r' || one == '\t';
}

static inline void skip(source *from)
{
    while (from->at < from->length && is_blank(from->text[from->at]))
        from->at++;
}

static inline int peek(const source *from)
{
    return from->at < from->length ? from->text[from->at] : -1;
}

/* Skip a character and the blanks around it; return whether it is there. */
static inline int take(source *from, char wanted)
{
    skip(from);
    if (peek(from) != wanted)
        return 0;
    from->at++;
    skip(from);
    return 1;
}

/* Read a whole number of few digits without leading zeros. */
static int take_whole(source *from, int64_t *value)
{
    const uint8_t *at = from->text + from->at, *end = from->text + from->length;
    int negative = at < end && *at == '-';
    const uint8_t *front = at += negative;
    int64_t found = 0;
    for (; at < end && (uint8_t)(*at - '0') < 10; at++)
        if (at - front < MOST_DIGITS)
            found = 10 * found + (*at - '0');
    from->at = at - from->text;
    *value = negative ? -found : found;
    if (at == front || at - front > MOST_DIGITS || (*front == '0' && at - front > 1))
        return 0;
    return at == end || (*at != '.' && *at != 'e' && *at != 'E');
}

/* The powers of ten that doubles represent exactly. */
static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Skip digits; return whether there are any. */
static int skip_digits(source *from)
{
    int64_t first = from->at;
    while (peek(from) >= '0' && peek(from) <= '9')
        from->at++;
    return from->at > first;
}

/* Read a number of any form, as Python does; return whether it is one, of not too many characters. */
static int take_real(source *from, double *real)
{
    char copy[LONGEST_NUMBER + 1], *end;
    int64_t first = from->at, is_whole = 1;
    from->at += peek(from) == '-';
    int64_t front = from->at;
    if (!skip_digits(from) || (from->text[front] == '0' && from->at - front > 1))
        return 0;
    if (peek(from) == '.') {
        from->at++, is_whole = 0;
        if (!skip_digits(from))
            return 0;
    }
    if (peek(from) == 'e' || peek(from) == 'E') {
        from->at++, is_whole = 0;
        from->at += peek(from) == '-' || peek(from) == '+';
        if (!skip_digits(from))
            return 0;
    }
    int64_t length = from->at - first;
    if (length > LONGEST_NUMBER)
        return 0;
    memcpy(copy, from->text + first, (size_t)length);
    copy[length] = 0;
    *real = strtod(copy, &end);
    *real = is_whole && !*real ? 0 : *real;
    return end == copy + length; /* else the point of this process is another character */
}

/* Read a number of up to 53 bits without an exponent, the usual form; return 0 without moving for others. */
static int take_short(source *from, double *real)
{
    const uint8_t *at = from->text + from->at, *end = from->text + from->length;
    int negative = at < end && *at == '-';
    const uint8_t *front = at += negative, *stop = end - at > MOST_SHORT ? at + MOST_SHORT : end, *point = NULL;
    uint64_t value = 0;
    for (; at < stop; at++) {
        uint8_t digit = (uint8_t)(*at - '0');
        if (digit < 10)
            value = 10 * value + digit;
        else if (*at == '.' && !point && at > front)
            point = at;
        else
            break;
    }
    int64_t whole = (point ? point : at) - front, decimals = point ? at - point - 1 : 0;
    if (at == stop || *at == '.' || *at == 'e' || *at == 'E' || !whole || (point && !decimals)
        || (*front == '0' && whole > 1) || whole + decimals - (*front == '0') > MOST_FIGURES || value > (uint64_t)1 << 53)
        return 0;
    *real = (double)value / tens[decimals];
    if (negative && (point || value))
        *real = -*real;
    from->at = at - from->text;
    return 1;
}

/* Read a number into a column of a row. */
static int take_column(source *from, int64_t *column)
{
    double real;
    if (!take_short(from, &real) && !take_real(from, &real))
        return 0;
    memcpy(column, &real, sizeof real);
    return 1;
}

/* Append a list of numbers to those of polygons or keypoints. */
static int take_numbers(source *from)
{
    if (!take(from, '['))
        return 0;
    do {
        double *next = from->numbers + from->numbers_used;
        if (from->numbers_used == from->numbers_room || (!take_short(from, next) && !take_real(from, next)))
            return 0;
        from->numbers_used++;
    } while (take(from, ','));
    return take(from, ']');
}

/* Read a text of plain characters; return its position. */
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

/* Skip a word. */
static int take_word(source *from, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(from->length - from->at) < length || memcmp(from->text + from->at, word, length))
        return 0;
    from->at += (int64_t)length;
    return 1;
}

/* Read a whole number of an annotation, which may have a point; a crowd flag may be true or false, and an id a text. */
static int take_loose(source *from, int64_t *value, int is_crowd, int is_id)
{
    double real;
    int64_t first = from->at;
    if (is_crowd && (take_word(from, "true") || take_word(from, "false"))) {
        *value = from->text[first] == 't';
        return 1;
    }
    if (is_id && peek(from) == '"') {
        from->at++;
        return take_whole(from, value) && peek(from) == '"' && ++from->at;
    }
    if (take_whole(from, value))
        return 1;
    from->at = first;
    if (!take_real(from, &real) || !(real > -1e15 && real < 1e15))
        return 0;
    *value = (int64_t)real;
    return (double)*value == real;
}

/* Return the length of the UTF-8 character that begins here; 0 if it is invalid. */
static int64_t character_length(const uint8_t *at, int64_t room)
{
    uint8_t one = at[0];
    int64_t size = one >= 0xc2 && one <= 0xdf ? 2 : one >= 0xe0 && one <= 0xef ? 3 : one >= 0xf0 && one <= 0xf4 ? 4 : 0;
    if (!size || size > room)
        return 0;
    for (int64_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((one == 0xe0 && at[1] < 0xa0) || (one == 0xed && at[1] > 0x9f) || (one == 0xf0 && at[1] < 0x90)
        || (one == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

/* Return whether any of the characters is a control character or beyond ASCII. */
static int are_unusual(const uint8_t *at, const uint8_t *end)
{
    uint8_t any = 0;
    for (; at < end; at++)
        any |= (uint8_t)((*at < 0x20) | (*at >= 0x80));
    return any;
}

/* Skip an escape; return its end, or NULL if it is invalid. */
static const uint8_t *skip_escape(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 2 || !at[1] || !strchr("\"\\/bfnrtu", at[1]))
        return NULL;
    if (at[1] != 'u')
        return at + 2;
    for (int i = 2; i < 6; i++)
        if (at + i >= end || !at[i] || !strchr("0123456789abcdefABCDEF", at[i]))
            return NULL;
    return at + 6;
}

/* Skip any JSON text. */
static int skip_text(source *from)
{
    const uint8_t *at = from->text + from->at, *end = from->text + from->length;
    const uint8_t *quote = at, *stop;
    if (peek(from) != '"')
        return 0;
    for (at++; at < end;) {
        if (quote < at) /* it was the one before, or escaped */
            quote = memchr(at, '"', (size_t)(end - at));
        if (!quote)
            return 0;
        stop = memchr(at, '\\', (size_t)(quote - at));
        stop = stop ? stop : quote;
        if (are_unusual(at, stop))
            for (const uint8_t *one = at; one < stop;) {
                int64_t size = *one < 0x20 ? 0 : *one < 0x80 ? 1 : character_length(one, end - one);
                if (!size)
                    return 0;
                one += size;
            }
        if (stop == quote) {
            from->at = quote + 1 - from->text;
            return 1;
        }
        at = skip_escape(stop, end);
        if (!at)
            return 0;
    }
    return 0;
}

/* Skip a number of any size. */
static int skip_number(source *from)
{
    double none;
    return take_short(from, &none) || take_real(from, &none);
}

/* The unread keys of an object; each may occur once. */
typedef struct {
    int64_t bounds[MOST_KEYS][2];
    int count, are_escaped, are_beyond; /* whether any has an escape, or a character beyond ASCII */
} keys;

static void forget_keys(keys *known)
{
    known->count = known->are_escaped = known->are_beyond = 0; /* all the rest would take longer to clear than to skip */
}

/* Read a key, in which only one way of writing each character is usual, so that equal keys have equal bytes. */
static int take_name(source *from, int64_t *start, int64_t *end)
{
    int64_t first = from->at;
    if (take_text(from, start, end))
        return 1;
    from->at = first;
    if (!skip_text(from))
        return 0;
    *start = first + 1, *end = from->at - 1;
    const uint8_t *at = from->text + *start, *stop = from->text + *end;
    while ((at = memchr(at, '\\', (size_t)(stop - at)))) {
        if (at[1] == '/')
            return 0;
        if (at[1] == 'u') {
            int code = 0;
            for (int i = 2; i < 6; i++) {
                if (at[i] >= 'A' && at[i] <= 'F')
                    return 0;
                code = 16 * code + (at[i] >= 'a' ? at[i] - 'a' + 10 : at[i] - '0');
            }
            if ((code >= 0x20 && code < 0x7f) || (code >= '\b' && code <= '\r' && code != '\v'))
                return 0;
        }
        at += at[1] == 'u' ? 6 : 2;
    }
    return 1;
}

/* Add a key; return whether it is new. */
static int is_new(const source *from, keys *known, int64_t start, int64_t end)
{
    const uint8_t *key = from->text + start;
    for (int64_t i = 0; i < end - start; i++)
        known->are_escaped |= key[i] == '\\', known->are_beyond |= key[i] > 0x7e;
    if (known->count == MOST_KEYS || (known->are_escaped && known->are_beyond))
        return 0;
    for (int i = 0; i < known->count; i++)
        if (known->bounds[i][1] - known->bounds[i][0] == end - start
            && !memcmp(from->text + known->bounds[i][0], key, (size_t)(end - start)))
            return 0;
    known->bounds[known->count][0] = start, known->bounds[known->count++][1] = end;
    return 1;
}

/* Skip any value that Python's parser accepts, including NaN. */
static int skip_value(source *from, int depth)
{
    int one = peek(from);
    if (one == '"')
        return skip_text(from);
    if (one == '[' || one == '{') {
        keys known;
        forget_keys(&known);
        char closing = one == '[' ? ']' : '}';
        from->at++;
        if (depth == DEEPEST)
            return 0;
        skip(from);
        if (peek(from) == closing) {
            from->at++;
            return 1;
        }
        do {
            int64_t start, end;
            if (one == '{'
                && (!take_name(from, &start, &end) || !is_new(from, &known, start, end) || !take(from, ':')))
                return 0;
            if (!skip_value(from, depth + 1))
                return 0;
        } while (take(from, ','));
        if (peek(from) != closing)
            return 0;
        from->at++;
        return 1;
    }
    return take_word(from, "null") || take_word(from, "true") || take_word(from, "false") || take_word(from, "NaN")
        || take_word(from, "Infinity") || take_word(from, "-Infinity") || skip_number(from);
}

/* Return the length of an escape that stands for a character of run lengths, and the character; 0 for others. */
static int64_t take_escape(const uint8_t *at, const uint8_t *end, uint8_t *one)
{
    int code = 0;
    const uint8_t *after = skip_escape(at, end);
    if (!after || (at[1] != '\\' && at[1] != '/' && at[1] != 'u'))
        return 0;
    for (int i = 2; i < after - at; i++)
        code = 16 * code + (at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
    *one = after - at == 2 ? at[1] : (uint8_t)code;
    return after - at == 2 || (code >= 0x20 && code <= 0x7e) ? after - at : 0;
}

/* Copy a mask's text, whose escapes stand for one character. */
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
    if (from->letters - from->written < (quote ? quote - text : 0))
        return 0;
    while (quote && stop != quote) {
        stop = memchr(text, '\\', (size_t)(quote - text));
        stop = stop ? stop : quote;
        for (const uint8_t *one = text; one < stop; one++)
            odd |= (*one < 0x20) | (*one > 0x7e);
        memcpy(out, text, (size_t)(stop - text));
        out += stop - text;
        if (stop != quote) {
            int64_t escape = take_escape(stop, quote, out++);
            if (!escape) /* an escaped quote too */
                return 0;
            text = stop + escape;
        }
    }
    if (!quote)
        return 0;
    from->at = quote + 1 - from->text;
    from->written = out - from->masks;
    row[COUNTS_END] = from->written;
    return !odd && from->written - row[COUNTS] <= LONGEST_TEXT;
}

/* Write a list of run lengths as text; find their number, their sum, and the mask's area. */
static int take_list(source *from, int64_t *row, int64_t *count, int64_t *sum)
{
    sj_writer to = {from->masks + from->written, from->masks + from->letters, 0, {0, 0}};
    int64_t run, area = 0, all = 0;
    if (!take(from, '['))
        return 0;
    do {
        if (!take_whole(from, &run) || run < 0 || run > SJ_MOST_PIXELS)
            return 0;
        area += run & -(to.count & 1);
        if (all > SJ_MOST_PIXELS || !sj_put_run(&to, run))
            return 0;
        all += run;
    } while (take(from, ','));
    row[AREA] = area, *sum = all, *count = to.count;
    row[COUNTS] = from->written, row[COUNTS_END] = from->written = to.at - from->masks;
    return take(from, ']') && from->written - row[COUNTS] <= LONGEST_TEXT;
}

static int is_key(const source *from, int64_t start, int64_t end, const char *key)
{
    return (size_t)(end - start) == strlen(key) && !memcmp(from->text + start, key, (size_t)(end - start));
}

/* The form of a mask that was read; lists are checked. */
enum { NO_MASK, TEXT_MASK, LISTED_MASK };

/* Read {"size": [height, width], "counts": "…"}, each once, in any order; counts may be a list. Return its form. */
static int take_mask(source *from, int64_t *row)
{
    int seen = 0;
    int64_t listed = 0, sum = 0;
    keys known;
    forget_keys(&known);
    if (!take(from, '{'))
        return 0;
    do {
        int64_t start, end;
        if (!take_name(from, &start, &end) || !take(from, ':'))
            return 0;
        if (is_key(from, start, end, "size") && !(seen & 1)) {
            seen |= 1;
            if (!take(from, '[') || !take_whole(from, row + HEIGHT) || !take(from, ',')
                || !take_whole(from, row + WIDTH) || !take(from, ']'))
                return 0;
        } else if (is_key(from, start, end, "counts") && !(seen & 2)) {
            seen |= 2;
            if (peek(from) == '[' ? !take_list(from, row, &listed, &sum) : !take_counts(from, row))
                return 0;
        } else if (is_key(from, start, end, "size") || is_key(from, start, end, "counts")
                   || !is_new(from, &known, start, end) || !skip_value(from, 0))
            return 0;
    } while (take(from, ','));
    if (seen != 3 || !take(from, '}') || row[HEIGHT] < 0 || row[WIDTH] < 0 || row[HEIGHT] > MOST_SIDE
        || row[WIDTH] > MOST_SIDE)
        return 0;
    int64_t pixels = row[HEIGHT] * row[WIDTH];
    return !listed ? TEXT_MASK : sum == pixels && listed <= 2 * pixels + 64 ? LISTED_MASK : NO_MASK;
}

/* Read [[x, y, …], …], or a single ring. */
static int take_polygon(source *from, int64_t *row)
{
    int64_t first = from->at;
    row[HEIGHT] = row[WIDTH] = -1;
    row[COUNTS] = row[COUNTS_END] = from->written;
    row[FAULT] = row[AREA] = 0;
    row[RING] = from->rings_used;
    if (!take(from, '['))
        return 0;
    int several = peek(from) == '[';
    if (!several)
        from->at = first;
    do {
        if (from->rings_used == from->rings_room || !take_numbers(from))
            return 0;
        from->rings[from->rings_used++] = from->numbers_used;
    } while (several && take(from, ','));
    row[RING_END] = from->rings_used;
    return !several || take(from, ']');
}

/* Read as many numbers as the first record's keypoints have. */
static int take_points(source *from)
{
    int64_t before = from->numbers_used;
    if (!take_numbers(from))
        return 0;
    if (from->points < 0)
        from->points = from->numbers_used - before;
    return from->points == from->numbers_used - before;
}

/* Read an annotation's keypoints, and move them to the end of the numbers. */
static int take_true_points(source *from)
{
    int64_t before = from->numbers_used;
    if (!take_points(from))
        return 0;
    from->numbers_used = before, from->numbers_room -= from->points;
    memmove(from->numbers + from->numbers_room, from->numbers + before, (size_t)from->points * sizeof *from->numbers);
    return 1;
}

/* Read a box, or skip any other value. */
static int take_box(source *from, int64_t *row)
{
    int64_t first = from->at;
    if (take(from, '[')) {
        int side = 0;
        while (side < 4 && take_column(from, row + LEFT + side)) {
            side++;
            if (side < 4 && !take(from, ','))
                break;
        }
        if (side == 4 && take(from, ']')) {
            row[BOXED] = WHOLE_BOX;
            return 1;
        }
    }
    from->at = first;
    row[BOXED] = OTHER_BOX;
    if (!skip_value(from, 0))
        return 0;
    if (from->at - first == 4 && from->text[first] == 'n')
        row[BOXED] = EMPTY_BOX;
    if (from->text[first] == '[') {
        source inside = *from;
        inside.at = first + 1;
        skip(&inside);
        if (peek(&inside) == ']')
            row[BOXED] = EMPTY_BOX;
    }
    return 1;
}

/* Skip an empty list, which stands for no mask; return whether it is there. */
static int take_nothing(source *from)
{
    int64_t first = from->at;
    if (take(from, '[') && take(from, ']'))
        return 1;
    from->at = first;
    return 0;
}

static int take_checked_mask(source *from, int64_t *row)
{
    int form = take_mask(from, row);
    row[FAULT] = 0;
    if (form != TEXT_MASK)
        return form;
    const uint8_t *counts = from->masks + row[COUNTS];
    sj_ending ending;
    row[FAULT] = sj_check_mask(counts, row[COUNTS_END] - row[COUNTS], row[HEIGHT] * row[WIDTH], row + AREA, &ending);
    return 1;
}

/* Return the values of one of the record's frames, or NULL without room. */
static int64_t *frame_at(const source *from, int64_t frame)
{
    if (frame >= from->room - from->used)
        return NULL;
    return from->frames + OF_FRAME * (from->used + frame);
}

/* Read a list with a mask or null for each frame; return the range of its frames. */
static int take_frames(source *from, int64_t *row)
{
    int64_t count = 0;
    if (!take(from, '['))
        return 0;
    do {
        int64_t mask[COLUMNS], *frame = frame_at(from, count++);
        if (!frame)
            return 0;
        if (take_word(from, "null"))
            mask[HEIGHT] = mask[WIDTH] = -1;
        else if (!take_mask(from, mask))
            return 0;
        frame[0] = mask[HEIGHT], frame[1] = mask[WIDTH], frame[2] = from->written;
    } while (take(from, ','));
    row[COUNTS] = from->used, row[COUNTS_END] = from->used + count;
    return take(from, ']');
}

/* The meaning of a record's key; its number is its bit among the seen keys. */
enum {
    IMAGE_KEY, CATEGORY_KEY, SCORE_KEY, SHAPE_KEY, BOX_KEY, ID_KEY, CROWD_KEY, MARKED_KEY, POINTS_KEY, OTHER_KEY, UNUSUAL_KEY
};

/* The keys of an annotation, whose area takes the place of a score: all of these, and a mask, or a box or keypoints with
 * an area. */
enum {
    ALWAYS = 1 << IMAGE_KEY | 1 << CATEGORY_KEY | 1 << ID_KEY, HAS_MASK = 1 << SHAPE_KEY,
    HAS_BOX = 1 << SCORE_KEY | 1 << BOX_KEY, HAS_POINTS = 1 << SCORE_KEY | 1 << POINTS_KEY
};

static int find_key(const source *from, int64_t start, int64_t end)
{
    static const char *const unusual[] = {"sigmas", "hidden", "distance", "density"};
    static const char *const shapes[] = {"segmentation", "segmentations", "bbox", "keypoints", "segmentation"};
    int is_annotation = from->shape == ANNOTATION;
    const char *const wanted[] = {from->shape == FRAMES ? "video_id" : "image_id", "category_id",
                                  is_annotation ? "area" : "score", shapes[from->shape], "bbox", "id", "iscrowd",
                                  "num_keypoints", "keypoints"};
    for (int key = 0; key < (is_annotation ? OTHER_KEY : ID_KEY); key++)
        if (is_key(from, start, end, wanted[key]))
            return key;
    for (size_t i = 0; is_annotation && i < sizeof unusual / sizeof *unusual; i++)
        if (is_key(from, start, end, unusual[i]))
            return UNUSUAL_KEY;
    return OTHER_KEY;
}

/* Read a key and the colon after it; return its meaning, or -1. */
static int take_key(source *from, int64_t *start, int64_t *end)
{
    return take_name(from, start, end) && take(from, ':') ? find_key(from, *start, *end) : -1;
}

static int take_value(source *from, int key, int64_t *row, int *seen)
{
    if (key == OTHER_KEY)
        return skip_value(from, 0);
    if (key < 0 || key == UNUSUAL_KEY || *seen & 1 << key)
        return 0;
    *seen |= 1 << key;
    int is_annotation = from->shape == ANNOTATION;
    switch (key) {
    case IMAGE_KEY:
        return is_annotation ? take_loose(from, row + IMAGE, 0, 0) : take_whole(from, row + IMAGE);
    case CATEGORY_KEY:
        return is_annotation ? take_loose(from, row + CATEGORY, 0, 0) : take_whole(from, row + CATEGORY);
    case SCORE_KEY:
        return take_column(from, row + SCORE);
    case BOX_KEY:
        return take_box(from, row);
    case ID_KEY:
    case CROWD_KEY:
        return take_loose(from, from->frames + OF_ANNOTATION * from->used + (key - ID_KEY), key == CROWD_KEY, key == ID_KEY);
    case MARKED_KEY:
        return take_whole(from, from->frames + OF_ANNOTATION * from->used + (key - ID_KEY));
    case POINTS_KEY:
        return take_true_points(from);
    }
    if (is_annotation && take_nothing(from)) {
        *seen &= ~HAS_MASK;
        return 1;
    }
    switch (from->shape) {
    case MASK:
    case ANNOTATION:
        return peek(from) == '[' ? take_polygon(from, row) : take_checked_mask(from, row);
    case FRAMES:
        return take_frames(from, row);
    case BOX:
        return take_box(from, row) && row[BOXED] == WHOLE_BOX;
    default:
        return take_points(from);
    }
}

/* Finish an annotation that has these keys; return whether it has what it needs, and keypoints if those before have any. */
static int close_annotation(source *from, int64_t *row, int seen)
{
    int64_t *annotation = from->frames + OF_ANNOTATION * from->used;
    int has_mask = (seen & HAS_MASK) != 0;
    if ((seen & ALWAYS) != ALWAYS || (!has_mask && (seen & HAS_BOX) != HAS_BOX && (seen & HAS_POINTS) != HAS_POINTS))
        return 0;
    if (from->used && (annotation[-1] & 1 << POINTS_KEY) != (seen & 1 << POINTS_KEY))
        return 0;
    if (!has_mask)
        row[COUNTS] = row[COUNTS_END] = from->written;
    annotation[OF_ANNOTATION - 1] = seen;
    from->used++;
    return 1;
}

static int take_record(source *from, int64_t *row)
{
    int seen = 0;
    keys known;
    forget_keys(&known);
    memset(row, 0, COLUMNS * sizeof *row);
    if (from->shape == ANNOTATION) {
        if (from->used == from->room)
            return 0;
        memset(from->frames + OF_ANNOTATION * from->used, 0, OF_ANNOTATION * sizeof *from->frames);
    }
    if (!take(from, '{'))
        return 0;
    do {
        int64_t start, end;
        int key = take_key(from, &start, &end);
        if (key == OTHER_KEY && !is_new(from, &known, start, end))
            return 0;
        if (!take_value(from, key, row, &seen))
            return 0;
    } while (take(from, ','));
    if (!take(from, '}'))
        return 0;
    if (from->shape == FRAMES)
        from->used += row[COUNTS_END] - row[COUNTS];
    return from->shape == ANNOTATION ? close_annotation(from, row, seen) : (seen & 15) == 15;
}

/* Read the records at the start of a text, each followed by a comma, into rows of sixteen numbers.
 *
 * A row has image, category, score, height, width, the range of the mask's text in `masks`, its fault, its area, the
 * kind of box, its four sides, and the range of a polygon's rings; a polygon has height and width -1.  Score and sides
 * are bits of doubles.  `shape` selects the value to read: a mask, the masks of a video's frames, a box, or keypoints.
 * Other keys are skipped.
 *
 * For a video, a row has the range of its frames instead of a text, and no sizes and areas.  Each frame has three
 * numbers: height and width (-1 without a mask), and the end of its text.  For a truth's annotations, the area takes the
 * place of the score, and each has four more numbers: its id, its crowd flag, the number of its marked keypoints, and the
 * bits of its keys.  All have equally many keypoints or none, at the end of `numbers`, the last annotation's first.  The
 * end of the list may follow the last one.
 *
 * `rooms` limits the letters, frames, numbers and rings.  `used` gets the number of records; the position
 * of the rest, which is incomplete or unusual, and which Python's parser judges; the numbers of frames, numbers and
 * rings; and the numbers per record of keypoints.  Without any record, the result is SJ_BAD_DATA. */
SJ_EXPORT int sj_records(
    const uint8_t *text, int64_t length, int32_t shape, int64_t most, int64_t *rows, uint8_t *masks, int64_t *frames,
    double *numbers, int64_t *rings, const int64_t *rooms, int64_t *used)
{
    if (!text || length < 0 || shape < MASK || shape > ANNOTATION || most < 0 || !rows || !masks || !frames || !numbers
        || !rings || !rooms || !used)
        return SJ_BAD_CALL;
    for (int i = 0; i < 4; i++)
        if (rooms[i] < 0)
            return SJ_BAD_CALL;
    source from = {text, 0, length, shape, masks, 0, rooms[0], frames, rooms[1], 0, numbers, rooms[2], 0, rings, rooms[3], 0,
                   -1};
    memset(used, 0, 6 * sizeof *used);
    while (used[0] < most && take_record(&from, rows + COLUMNS * used[0])
           && (take(&from, ',') || (shape == ANNOTATION && peek(&from) == ']'))) {
        used[0]++, used[1] = from.at, used[2] = from.used, used[3] = from.numbers_used;
        used[4] = from.rings_used, used[5] = from.points;
    }
    return used[0] ? SJ_FINE : SJ_BAD_DATA;
}
