/* JSON records and annotations of instances, in images or videos -> columns of whole numbers. */
#include "kernel.h"

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

/* The part of a record that is read; a record of a pair may lack its category, tracks have areas and boxes of frames. */
enum { MASK, FRAMES, BOX, POINTS, ANNOTATION, PAIR, TRACKS };

/* The kind of `bbox`: absent, null or an empty list, four numbers, or anything else. */
enum { NO_BOX, EMPTY_BOX, WHOLE_BOX, OTHER_BOX };

/* The number of values of an annotation outside its row, of a frame, and of a track's frame. */
#define OF_ANNOTATION 4
#define OF_FRAME 3
#define OF_TRACK 5

/* The longest blanks after a comma that are expected, and the bytes that are read to find them. */
#define LONGEST_GAP 16

/* The blanks after the last comma of a list: their length, the two words that they begin, and the bits that they fill. */
typedef struct {
    int64_t length;
    uint64_t words[2], filled[2];
} gap;

/* A key at this position of the last record, and its meaning. */
typedef struct {
    int64_t start, end;
    int key;
} guess;

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
    int64_t *odd; /* the numbers left to Python: their positions in the rows or numbers, and in the text */
    int64_t odd_room, odd_used;
    int64_t points; /* the numbers of a record's keypoints; -1 before the first */
    gap blanks;
    guess guesses[MOST_KEYS];
    int taken, alike; /* the number of the last record's keys, and how many of this one's begin it alike */
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

/* The reciprocals of the powers of five, rounded down to 128 bits of which the first is set. */
static const uint64_t fifths[28][2] = {
    {0x8000000000000000u, 0x0000000000000000u}, {0xccccccccccccccccu, 0xccccccccccccccccu},
    {0xa3d70a3d70a3d70au, 0x3d70a3d70a3d70a3u}, {0x83126e978d4fdf3bu, 0x645a1cac083126e9u},
    {0xd1b71758e219652bu, 0xd3c36113404ea4a8u}, {0xa7c5ac471b478423u, 0x0fcf80dc33721d53u},
    {0x8637bd05af6c69b5u, 0xa63f9a49c2c1b10fu}, {0xd6bf94d5e57a42bcu, 0x3d32907604691b4cu},
    {0xabcc77118461cefcu, 0xfdc20d2b36ba7c3du}, {0x89705f4136b4a597u, 0x31680a88f8953030u},
    {0xdbe6fecebdedd5beu, 0xb573440e5a884d1bu}, {0xafebff0bcb24aafeu, 0xf78f69a51539d748u},
    {0x8cbccc096f5088cbu, 0xf93f87b7442e45d3u}, {0xe12e13424bb40e13u, 0x2865a5f206b06fb9u},
    {0xb424dc35095cd80fu, 0x538484c19ef38c94u}, {0x901d7cf73ab0acd9u, 0x0f9d37014bf60a10u},
    {0xe69594bec44de15bu, 0x4c2ebe687989a9b3u}, {0xb877aa3236a4b449u, 0x09befeb9fad487c2u},
    {0x9392ee8e921d5d07u, 0x3aff322e62439fcfu}, {0xec1e4a7db69561a5u, 0x2b31e9e3d06c32e5u},
    {0xbce5086492111aeau, 0x88f4bb1ca6bcf584u}, {0x971da05074da7beeu, 0xd3f6fc16ebca5e03u},
    {0xf1c90080baf72cb1u, 0x5324c68b12dd6338u}, {0xc16d9a0095928a27u, 0x75b7053c0f178293u},
    {0x9abe14cd44753b52u, 0xc4926a9672793542u}, {0xf79687aed3eec551u, 0x3a83ddbd83f52204u},
    {0xc612062576589ddau, 0x95364afe032a819du}, {0x9e74d1b791e07e48u, 0x775ea264cf55347du}};

/* Return a whole number above 0 divided by a power of ten up to 27, rounded once, to the nearest. */
static double divide(uint64_t value, int64_t decimals)
{
    __extension__ typedef unsigned __int128 wide;
    if (value <= (uint64_t)1 << 53 && decimals <= 22)
        return (double)value / tens[decimals];
    uint64_t divisor = 1, bits;
    int zeros = __builtin_clzll(value);
    int64_t figures = decimals ? (decimals * 1217359 >> 19) + 1 : 0; /* the bits of the power of five */
    value <<= zeros;
    /* The quotient, which is at most two units of its last bit too small. */
    wide quotient = (wide)value * fifths[decimals][0] + (wide)((wide)value * fifths[decimals][1] >> 64);
    int64_t exponent = 1 - figures - 64 - zeros - decimals;
    int shift = quotient >> 127 ? 75 : 74;
    uint64_t kept = (uint64_t)(quotient >> shift);
    wide below = quotient - ((wide)kept << shift), half = (wide)1 << (shift - 1);
    if (below == half || below == half - 1) { /* too close to the middle: divide exactly */
        for (int64_t i = 0; i < decimals; i++)
            divisor *= 5;
        wide dividend = (wide)value << 64, exact = dividend / divisor;
        int rest = exact * divisor != dividend;
        exponent = -64 - zeros - decimals;
        for (shift = 0; exact >> shift >> 53; shift++)
            ;
        kept = (uint64_t)(exact >> shift), below = exact - ((wide)kept << shift), half = (wide)1 << (shift - 1);
        kept += below > half || (below == half && (rest || (kept & 1)));
    } else
        kept += below > half;
    bits = (uint64_t)(1023 + exponent + shift) << 52;
    double power, whole = (double)kept;
    memcpy(&power, &bits, sizeof power);
    return whole * power;
}

/* Read a number: compute it if it has few digits, else leave it to Python. `place` is its index in the rows, or from
 * -1 down in the numbers. */
static int take_real(source *from, int64_t place, double *real)
{
    int64_t first = from->at, figures = 0, decimals = 0, power = 0;
    uint64_t value = 0;
    int negative = peek(from) == '-', is_whole = 1, is_odd = 0;
    from->at += negative;
    int64_t front = from->at;
    for (int point = 0;; from->at++) {
        int one = peek(from);
        if (one >= '0' && one <= '9') {
            figures += value || one != '0';
            if (figures <= MOST_FIGURES)
                value = 10 * value + (uint64_t)(one - '0');
            decimals += point;
        } else if (one == '.' && !point) {
            if (from->at == front)
                return 0;
            point = 1, is_whole = 0;
        } else
            break;
    }
    if (from->at == front || from->text[from->at - 1] == '.')
        return 0;
    if (from->text[front] == '0' && from->at - front > 1 && from->text[front + 1] != '.')
        return 0;
    if (peek(from) == 'e' || peek(from) == 'E') {
        from->at++;
        int minus = peek(from) == '-';
        from->at += minus || peek(from) == '+';
        int64_t begin = from->at;
        for (; peek(from) >= '0' && peek(from) <= '9'; from->at++)
            power = power < 10000 ? 10 * power + (from->text[from->at] - '0') : power;
        if (from->at == begin)
            return 0;
        power = minus ? -power : power, is_whole = 0;
    }
    if (from->at - first > LONGEST_NUMBER)
        return 0;
    decimals -= power;
    if (figures > MOST_FIGURES) { /* between two numbers, which usually round to the same */
        decimals -= figures - MOST_FIGURES;
        is_odd = decimals < 1 || decimals > 27 || divide(value, decimals) != divide(value + 1, decimals);
    } else if (decimals > 27)
        is_odd = value != 0;
    for (; !is_odd && value && decimals < 0; decimals++) {
        is_odd = value > UINT64_MAX / 10;
        value *= 10;
    }
    if (is_odd) {
        if (from->odd_used == from->odd_room)
            return 0;
        int64_t *odd = from->odd + 3 * from->odd_used++;
        odd[0] = place, odd[1] = first, odd[2] = from->at;
        *real = 0;
        return 1;
    }
    *real = !value ? 0 : decimals > 0 ? divide(value, decimals) : (double)value;
    if (negative && !(is_whole && !value))
        *real = -*real;
    return 1;
}

/* Find how many of eight bytes, of which digits have become their values, are digits before the first other byte. The
 * bits of bytes that are no digits are right up to the first byte beyond ASCII. */
static inline int count_digits(uint64_t word, uint64_t *beyond)
{
    *beyond = ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
    return *beyond ? __builtin_ctzll(*beyond) / 8 : 8;
}

/* Return the number that the values of one to eight digits at the start of a word mean, without branches. */
static inline int64_t join_digits(uint64_t word, int digits)
{
    word <<= 8 * (8 - digits);
    word = 10 * word + (word >> 8); /* pairs of digits, in every second byte */
    return (int64_t)(uint32_t)(((word & 0xff000000ffu) * 0xf424000000064u + ((word >> 16) & 0xff000000ffu) * 0x271000000001u) >> 32);
}

/* Read a number of up to nineteen figures without an exponent, the usual form; return 0 without moving for others. */
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
        || (*front == '0' && whole > 1) || whole + decimals - (*front == '0') > MOST_FIGURES)
        return 0;
    *real = value <= (uint64_t)1 << 53 ? (double)value / tens[decimals] : divide(value, decimals);
    if (negative && (point || value))
        *real = -*real;
    from->at = at - from->text;
    return 1;
}

/* Read a number into a column of a row. */
static int take_column(source *from, int64_t *rows, int64_t *column)
{
    double real;
    if (!take_short(from, &real) && !take_real(from, column - rows, &real))
        return 0;
    memcpy(column, &real, sizeof real);
    return 1;
}

/* Skip the blanks after a comma, which are usually those after the last one, in a text of at least sixteen bytes. */
static inline const uint8_t *skip_gap(gap *last, const uint8_t *at, const uint8_t *end)
{
    if (!(((sj_load(at) ^ last->words[0]) & last->filled[0]) | ((sj_load(at + 8) ^ last->words[1]) & last->filled[1]))
        && at[last->length] > ' ')
        return at + last->length;
    const uint8_t *stop = at;
    while (stop < end && is_blank(*stop))
        stop++;
    if (stop - at < LONGEST_GAP) {
        last->length = stop - at;
        for (int i = 0; i < 2; i++) {
            int64_t bytes = last->length - 8 * i;
            last->words[i] = sj_load(at + 8 * i);
            last->filled[i] = bytes >= 8 ? ~(uint64_t)0 : bytes > 0 ? ((uint64_t)1 << 8 * bytes) - 1 : 0;
        }
    }
    return stop;
}

/* Read a number of up to seven characters and its sign, and the comma after it, without branches for each character, from
 * at least nine bytes; return the place of the comma, or NULL. */
static inline const uint8_t *take_brief(const uint8_t *at, double *real)
{
    int negative = *at == '-', decimals = 0;
    at += negative;
    uint64_t word = sj_load(at) ^ 0x3030303030303030u, beyond;
    int whole = count_digits(word, &beyond), stop = whole;
    if (!whole || whole > 7 || (whole > 1 && *at == '0'))
        return NULL;
    if (at[whole] == '.') {
        uint64_t before = ((uint64_t)1 << 8 * whole) - 1;
        word = (word & before) | (word >> 8 & ~before);
        beyond &= beyond - 1;
        if (!beyond)
            return NULL;
        stop = __builtin_ctzll(beyond) / 8, decimals = stop - whole - 1;
        if (!decimals)
            return NULL;
    }
    if (at[stop] != ',')
        return NULL;
    int64_t value = join_digits(word, whole + decimals);
    *real = (double)value / tens[decimals];
    if (negative && (decimals || value))
        *real = -*real;
    return at + stop;
}

/* Append the brief numbers that come next in a list. */
static void take_briefs(source *from)
{
    const uint8_t *at = from->text + from->at, *end = from->text + from->length;
    double *next = from->numbers + from->numbers_used, *stop = from->numbers + from->numbers_room;
    gap blanks = from->blanks;
    while (next < stop && end - at > 10 + LONGEST_GAP) {
        const uint8_t *comma = take_brief(at, next);
        if (!comma)
            break;
        at = skip_gap(&blanks, comma + 1, end), next++;
    }
    from->at = at - from->text, from->numbers_used = next - from->numbers, from->blanks = blanks;
}

/* Append a list of numbers to those of polygons or keypoints. */
static int take_numbers(source *from)
{
    if (!take(from, '['))
        return 0;
    do {
        take_briefs(from);
        skip(from);
        if (from->numbers_used == from->numbers_room
            || (!take_short(from, from->numbers + from->numbers_used)
                && !take_real(from, -1 - from->numbers_used, from->numbers + from->numbers_used)))
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
    int64_t first = from->at, odd = from->odd_used;
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
    if (!take_real(from, 0, &real) || from->odd_used != odd || !(real > -1e15 && real < 1e15))
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
    if (take_short(from, &none))
        return 1;
    int64_t odd = from->odd_used, room = from->odd_room;
    int64_t *place = from->odd, unused[3];
    from->odd = unused, from->odd_used = 0, from->odd_room = 1;
    int is_number = take_real(from, 0, &none);
    from->odd = place, from->odd_used = odd, from->odd_room = room;
    return is_number;
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

/* Add a key; return whether it is new, which is known of `inherited` ones. */
static int is_new(const source *from, keys *known, int64_t start, int64_t end, int inherited)
{
    const uint8_t *key = from->text + start;
    for (int64_t i = 0; i < end - start; i++)
        known->are_escaped |= key[i] == '\\', known->are_beyond |= key[i] > 0x7e;
    if (known->count == MOST_KEYS || (known->are_escaped && known->are_beyond))
        return 0;
    for (int i = 0; !inherited && i < known->count; i++)
        if (known->bounds[i][1] - known->bounds[i][0] == end - start
            && !memcmp(from->text + known->bounds[i][0], key, (size_t)(end - start)))
            return 0;
    known->bounds[known->count][0] = start, known->bounds[known->count++][1] = end;
    return 1;
}

/* Skip the plain numbers of a list, each with its comma and a blank; return where the rest begins. */
static const uint8_t *skip_plain_numbers(const uint8_t *at, const uint8_t *end)
{
    for (const uint8_t *one = at;; at = one) {
        one += one < end && *one == '-';
        const uint8_t *front = one;
        while (one < end && (uint8_t)(*one - '0') < 10)
            one++;
        if (one == front || (*front == '0' && one - front > 1))
            return at;
        if (one < end && *one == '.') {
            front = ++one;
            while (one < end && (uint8_t)(*one - '0') < 10)
                one++;
            if (one == front)
                return at;
        }
        if (one - at > LONGEST_NUMBER || one == end || *one++ != ',')
            return at;
        one += one < end && *one == ' ';
    }
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
        if (one == '[') {
            from->at = skip_plain_numbers(from->text + from->at, from->text + from->length) - from->text;
            skip(from);
        }
        do {
            int64_t start, end;
            if (one == '{'
                && (!take_name(from, &start, &end) || !is_new(from, &known, start, end, 0) || !take(from, ':')))
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

/* Read a whole number of up to seven digits and the comma and blanks after it, the usual form, without branches for each
 * digit; return where the next one begins, or NULL for others. */
static inline const uint8_t *take_run(const uint8_t *at, const uint8_t *end, gap *blanks, int64_t *run)
{
    if (end - at < 10 + LONGEST_GAP)
        return NULL;
    uint64_t word = sj_load(at) ^ 0x3030303030303030u, beyond;
    int digits = count_digits(word, &beyond);
    if (!digits || digits > 7 || at[digits] != ',' || (digits > 1 && *at == '0'))
        return NULL;
    *run = join_digits(word, digits);
    return skip_gap(blanks, at + digits + 1, end);
}

/* Write a list of run lengths as text; find their number, their sum, and the mask's area. */
static int take_list(source *from, int64_t *row, int64_t *count, int64_t *sum)
{
    sj_writer to = {from->masks + from->written, from->masks + from->letters, 0, {0, 0}};
    const uint8_t *end = from->text + from->length;
    gap blanks = from->blanks;
    int64_t run, area = 0, all = 0;
    if (!take(from, '['))
        return 0;
    for (const uint8_t *at = from->text + from->at; at;) {
        const uint8_t *next = take_run(at, end, &blanks, &run);
        if (!next) {
            from->at = at - from->text;
            if (!take_whole(from, &run) || run < 0 || run > SJ_MOST_PIXELS)
                return 0;
            next = take(from, ',') ? from->text + from->at : NULL;
        }
        area += run & -(to.count & 1);
        if (all > SJ_MOST_PIXELS || !sj_put_run(&to, run))
            return 0;
        all += run, at = next;
    }
    row[AREA] = area, *sum = all, *count = to.count, from->blanks = blanks;
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
                   || !is_new(from, &known, start, end, 0) || !skip_value(from, 0))
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
    int64_t before = from->numbers_used, odd = from->odd_used;
    if (!take_points(from))
        return 0;
    from->numbers_used = before, from->numbers_room -= from->points;
    for (; odd < from->odd_used; odd++)
        from->odd[3 * odd] -= from->numbers_room - before;
    memmove(from->numbers + from->numbers_room, from->numbers + before, (size_t)from->points * sizeof *from->numbers);
    return 1;
}

/* Read a box, or skip any other value. */
static int take_box(source *from, int64_t *rows, int64_t *row)
{
    int64_t first = from->at, odd = from->odd_used;
    if (take(from, '[')) {
        int side = 0;
        while (side < 4 && take_column(from, rows, row + LEFT + side)) {
            side++;
            if (side < 4 && !take(from, ','))
                break;
        }
        if (side == 4 && take(from, ']')) {
            row[BOXED] = WHOLE_BOX;
            return 1;
        }
    }
    from->at = first, from->odd_used = odd;
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
    return from->frames + (from->shape == TRACKS ? OF_TRACK : OF_FRAME) * (from->used + frame);
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

/* Read a number of few digits without an exponent; set `any` if it is not zero. */
static int take_nonzero(source *from, int64_t *any)
{
    const uint8_t *at = from->text + from->at, *end = from->text + from->length;
    at += at < end && *at == '-';
    const uint8_t *front = at, *point = NULL;
    int found = 0;
    for (; at < end && at - front < MOST_SHORT && ((uint8_t)(*at - '0') < 10 || (*at == '.' && !point)); at++) {
        if (*at == '.')
            point = at;
        else
            found |= *at != '0';
    }
    int64_t whole = (point ? point : at) - front;
    if (!whole || (whole > 1 && *front == '0') || point == at - 1)
        return 0;
    from->at = at - from->text;
    *any |= found;
    return 1;
}

/* Read a list with an area, a box, or null for each frame; set a value of each that is not zero, and their number. */
static int take_presence(source *from, int value, int are_boxes, int64_t *count)
{
    *count = 0;
    if (!take(from, '['))
        return 0;
    do {
        int64_t *frame = frame_at(from, (*count)++);
        if (!frame)
            return 0;
        frame[value] = 0;
        if (take_word(from, "null"))
            continue;
        if (!are_boxes) {
            if (!take_nonzero(from, frame + value))
                return 0;
            continue;
        }
        if (!take(from, '['))
            return 0;
        if (take(from, ']'))
            continue;
        do {
            if (!take_nonzero(from, frame + value))
                return 0;
        } while (take(from, ','));
        if (!take(from, ']'))
            return 0;
    } while (take(from, ','));
    return take(from, ']');
}

/* The meaning of a record's key; its number is its bit among the seen keys. */
enum {
    IMAGE_KEY, CATEGORY_KEY, SCORE_KEY, SHAPE_KEY, BOX_KEY, ID_KEY, CROWD_KEY, MARKED_KEY, POINTS_KEY, OTHER_KEY, UNUSUAL_KEY,
    AREAS_KEY = ID_KEY /* of tracks */
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
    static const char *const shapes[] = {
        "segmentation", "segmentations", "bbox", "keypoints", "segmentation", "segmentation", "segmentations"};
    int is_annotation = from->shape == ANNOTATION, is_track = from->shape == TRACKS;
    const char *const wanted[] = {from->shape == FRAMES || is_track ? "video_id" : "image_id", "category_id",
                                  is_annotation ? "area" : "score", shapes[from->shape], is_track ? "bboxes" : "bbox",
                                  is_track ? "areas" : "id", "iscrowd", "num_keypoints", "keypoints"};
    for (int key = 0; key < (is_annotation ? OTHER_KEY : is_track ? AREAS_KEY + 1 : ID_KEY); key++)
        if (is_key(from, start, end, wanted[key]))
            return key;
    for (size_t i = 0; is_annotation && i < sizeof unusual / sizeof *unusual; i++)
        if (is_key(from, start, end, unusual[i]))
            return UNUSUAL_KEY;
    return OTHER_KEY;
}

/* Read a key and the colon after it; return its meaning, or -1. Records usually have their keys in the same order. */
static int take_key(source *from, int place, int64_t *start, int64_t *end)
{
    guess *last = place < MOST_KEYS ? from->guesses + place : NULL;
    int64_t length = last ? last->end - last->start : 0;
    if (length && from->length - from->at > length + 2 && from->text[from->at] == '"'
        && !memcmp(from->text + from->at + 1, from->text + last->start, (size_t)length + 1)) {
        *start = from->at + 1, *end = *start + length;
        from->at = *end + 1;
        from->alike += from->alike == place && place < from->taken;
        return take(from, ':') ? last->key : -1;
    }
    if (!take_name(from, start, end) || !take(from, ':'))
        return -1;
    int key = find_key(from, *start, *end);
    if (last)
        *last = (guess){*start, *end, key};
    return key;
}

static int take_value(source *from, int key, int64_t *rows, int64_t *row, int *seen)
{
    if (key == OTHER_KEY)
        return skip_value(from, 0);
    if (key < 0 || key == UNUSUAL_KEY || *seen & 1 << key)
        return 0;
    *seen |= 1 << key;
    int is_annotation = from->shape == ANNOTATION, is_track = from->shape == TRACKS;
    switch (key) {
    case IMAGE_KEY:
        return is_annotation ? take_loose(from, row + IMAGE, 0, 0) : take_whole(from, row + IMAGE);
    case CATEGORY_KEY:
        return is_annotation ? take_loose(from, row + CATEGORY, 0, 0) : take_whole(from, row + CATEGORY);
    case SCORE_KEY:
        return take_column(from, rows, row + SCORE);
    case BOX_KEY:
        return is_track ? take_presence(from, 4, 1, row + WIDTH) : take_box(from, rows, row);
    case ID_KEY:
        if (is_track)
            return take_presence(from, 3, 0, row + HEIGHT);
        /* fall through */
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
    case PAIR:
        return peek(from) == '[' ? take_polygon(from, row) : take_checked_mask(from, row);
    case FRAMES:
    case TRACKS:
        return take_frames(from, row);
    case BOX:
        return take_box(from, rows, row) && row[BOXED] == WHOLE_BOX;
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

static int take_record(source *from, int64_t *rows, int64_t *row)
{
    int seen = 0, place = 0;
    keys known;
    forget_keys(&known);
    from->alike = 0;
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
        int key = take_key(from, place++, &start, &end);
        if (key == OTHER_KEY && !is_new(from, &known, start, end, from->alike == place))
            return 0;
        if (!take_value(from, key, rows, row, &seen))
            return 0;
    } while (take(from, ','));
    if (!take(from, '}'))
        return 0;
    from->taken = place;
    if (from->shape == PAIR && !(seen & 1 << CATEGORY_KEY))
        row[CATEGORY] = INT64_MIN, seen |= 1 << CATEGORY_KEY;
    if (from->shape == FRAMES || from->shape == TRACKS)
        from->used += row[COUNTS_END] - row[COUNTS];
    return from->shape == ANNOTATION ? close_annotation(from, row, seen) : (seen & 15) == 15;
}

/* Read the records at the start of a text, each followed by a comma, into rows of sixteen numbers.
 *
 * A row has image, category, score, height, width, the range of the mask's text in `masks`, its fault, its area, the
 * kind of box, its four sides, and the range of a polygon's rings; a polygon has height and width -1.  Score and sides
 * are bits of doubles.  `shape` selects the value to read: a mask, the masks of a video's frames, a box, or keypoints.
 * Other keys are skipped.  Records of pairs have a mask, and INT64_MIN if they lack a category.
 *
 * For a video, a row has the range of its frames instead of a text, and no sizes and areas.  Each frame has three
 * numbers: height and width (-1 without a mask), and the end of its text.  For a track, a frame has two more, which tell
 * whether its area is not 0 and whether its box has a number that is not 0; the row has the number of areas and of boxes
 * instead of a height and width.  For a truth's annotations, the area takes the
 * place of the score, and each has four more numbers: its id, its crowd flag, the number of its marked keypoints, and the
 * bits of its keys.  All have equally many keypoints or none, at the end of `numbers`, the last annotation's first.  The
 * end of the list may follow the last one.
 *
 * `rooms` limits the letters, frames, numbers, rings and odd numbers.  `used` gets the number of records; the position
 * of the rest, which is incomplete or unusual, and which Python's parser judges; the numbers of frames, numbers, rings
 * and odd numbers; and the numbers per record of keypoints.  Without any record, the result is SJ_BAD_DATA. */
SJ_EXPORT int sj_records(
    const uint8_t *text, int64_t length, int32_t shape, int64_t most, int64_t *rows, uint8_t *masks, int64_t *frames,
    double *numbers, int64_t *rings, int64_t *odd, const int64_t *rooms, int64_t *used)
{
    if (!text || length < 0 || shape < MASK || shape > TRACKS || most < 0 || !rows || !masks || !frames || !numbers
        || !rings || !odd || !rooms || !used)
        return SJ_BAD_CALL;
    for (int i = 0; i < 5; i++)
        if (rooms[i] < 0)
            return SJ_BAD_CALL;
    source from = {text, 0, length, shape, masks, 0, rooms[0], frames, rooms[1], 0, numbers, rooms[2], 0, rings, rooms[3], 0,
                   odd, rooms[4], 0, -1, {0, {0, 0}, {0, 0}}, {{0, 0, 0}}, 0, 0};
    memset(used, 0, 7 * sizeof *used);
    while (used[0] < most && take_record(&from, rows, rows + COLUMNS * used[0])
           && (take(&from, ',') || (shape == ANNOTATION && peek(&from) == ']'))) {
        used[0]++, used[1] = from.at, used[2] = from.used, used[3] = from.numbers_used;
        used[4] = from.rings_used, used[5] = from.odd_used, used[6] = from.points;
    }
    return used[0] ? SJ_FINE : SJ_BAD_DATA;
}
