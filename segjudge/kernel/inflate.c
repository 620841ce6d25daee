/* DEFLATE (RFC 1951) in zlib's frame (RFC 1950) -> bytes, one buffer at a time.
 *
 * It rejects everything that zlib rejects, and a little more, so every inflater gives the same bytes for a stream
 * that it accepts. */
#include "inflate.h"

#define LENGTHS 29
#define DISTANCES 30
#define END_OF_BLOCK 256
#define MOST_LITERALS (END_OF_BLOCK + 1 + LENGTHS)
/* The bits that the tables look up at once. */
#define LITERAL_BITS SJ_CODE_BITS
#define DISTANCE_BITS 9
#define HEADER_BITS 7
/* The entries of literals that are decoded after each other before bits are loaded: of 56 bits, they leave those that
 * the next entry is looked up by. */
#define MOST_ENTRIES 4
/* An entry of a table: the bits of a code and its extra bits, the bits of the code << 8, a kind, a value << 16.
 *
 * A longer code has the position of its own part of the table, and the bits that this looks up. */
enum { LONGER = 1 << 13, OTHER = 1 << 14 /* the end of a block, or a longer code */, LITERAL = 1 << 15 };
/* No symbol. */
#define NONE (OTHER | 1u << 16)

static inline uint32_t entry_of(uint32_t value, uint32_t extras) { return value << 16 | extras; }

/* The total bits of an entry, and the bits of its code. */
static inline int bits_of(uint32_t entry) { return (int)(entry & 63); }
static inline int code_bits_of(uint32_t entry) { return (int)(entry >> 8 & 15); }

/* Return an entry whose code has these bits. */
static inline uint32_t with_bits(uint32_t entry, int bits)
{
    return entry + (uint32_t)bits + ((uint32_t)bits << 8);
}

static const uint16_t length_bases[LENGTHS] = {
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extras[LENGTHS] = {
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_bases[DISTANCES] = {
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
    8193, 12289, 16385, 24577};

static uint32_t literal_entry(int symbol)
{
    int length = symbol - END_OF_BLOCK - 1;
    if (symbol < END_OF_BLOCK)
        return LITERAL | entry_of((uint32_t)symbol, 0);
    if (symbol == END_OF_BLOCK)
        return OTHER;
    return length < LENGTHS ? entry_of(length_bases[length], length_extras[length]) : NONE;
}

static uint32_t distance_entry(int symbol)
{
    uint32_t extras = symbol < 4 ? 0 : (uint32_t)symbol / 2 - 1;
    return symbol < DISTANCES ? entry_of(distance_bases[symbol], extras) : NONE;
}

static uint32_t plain_entry(int symbol) { return entry_of((uint32_t)symbol, 0); }

static inline uint64_t low_bits(uint64_t bits, int count) { return bits & (((uint64_t)1 << count) - 1); }

/* Return the value of an entry plus the extra bits, which follow the code. */
static inline int64_t value_of(uint32_t entry, uint64_t bits)
{
    return (int64_t)(entry >> 16) + (int64_t)(low_bits(bits, bits_of(entry)) >> code_bits_of(entry));
}

/* Build a code from the lengths of its symbols' codes; return whether it is complete, with a symbol for all bits.
 *
 * A distance code may also have a single one-bit symbol, or none. */
static int make_code(uint32_t *table, int bits, const uint8_t *lengths, int count, uint32_t (*entry)(int), int may_lack)
{
    int counts[SJ_LONGEST_CODE + 1] = {0}, places[SJ_LONGEST_CODE + 2] = {0}, used = 0, longest = 0;
    uint32_t entries[SJ_MOST_SYMBOLS], slots = 1u << bits, end = slots;
    for (int symbol = 0; symbol < count; symbol++)
        counts[lengths[symbol]]++;
    counts[0] = 0;
    for (int length = 1; length <= SJ_LONGEST_CODE; length++) {
        places[length + 1] = places[length] + counts[length];
        used += counts[length] << (SJ_LONGEST_CODE - length);
        longest = counts[length] ? length : longest;
    }
    int symbols = places[SJ_LONGEST_CODE + 1], is_whole = used == 1 << SJ_LONGEST_CODE;
    if (!is_whole && !(may_lack && (symbols == 0 || (symbols == 1 && counts[1] == 1))))
        return 0;
    for (int symbol = 0; symbol < count; symbol++)
        if (lengths[symbol])
            entries[places[lengths[symbol]]++] = entry(symbol);
    for (uint32_t slot = 0; slot < slots && !is_whole; slot++)
        table[slot] = with_bits(NONE, 1);
    uint32_t next = 0; /* a code in the stream's order, first bit lowest */
    for (int length = 1, at = 0, more = longest - bits; length <= longest; length++)
        for (int last = at + counts[length]; at < last; at++) {
            uint32_t *part = table, size = slots, slot = next;
            if (length > bits) {
                uint32_t *shared = table + (next & (slots - 1));
                size = 1u << more, slot = next >> bits;
                if (!slot) { /* the lowest of the codes that share these bits */
                    *shared = OTHER | LONGER | (uint32_t)more << 8 | end << 16;
                    end += size;
                }
                part += *shared >> 16;
            }
            for (; slot < size; slot += 1u << (length > bits ? length - bits : length))
                part[slot] = with_bits(entries[at], length);
            uint32_t bit = 1u << (length - 1);
            for (; next & bit; bit >>= 1)
                next ^= bit;
            next |= bit;
        }
    return 1;
}

/* Return the entry of a code that is longer than the bits which the table looks up at once. */
static inline uint32_t longer_entry(const uint32_t *table, int bits, uint32_t entry, uint64_t word)
{
    return table[(entry >> 16) + low_bits(word >> bits, code_bits_of(entry))];
}

/* Load at least 56 bits, or all remaining bits followed by zeros. */
static inline void refill(const uint8_t **in, const uint8_t *end, uint64_t *bits, int *count)
{
    if (end - *in >= 8) {
        *bits |= sj_load(*in) << *count;
        *in += (63 - *count) >> 3;
        *count |= 56;
    } else {
        for (; *count >= 0 && *count < 56 && *in < end; *count += 8)
            *bits |= (uint64_t) * (*in)++ << *count;
    }
}

/* Take up to 32 bits; if too few remain, `count` is negative from then on. */
static uint32_t take_bits(sj_inflater *stream, int count)
{
    refill(&stream->in, stream->end, &stream->bits, &stream->count);
    uint32_t bits = (uint32_t)low_bits(stream->bits, count);
    stream->bits >>= count;
    stream->count -= count;
    return bits;
}

/* Move back to the first byte without taken bits. */
static void align(sj_inflater *stream)
{
    stream->in -= stream->count >> 3;
    stream->bits = 0;
    stream->count = 0;
}

static const uint8_t header_order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

static int read_codes(sj_inflater *stream)
{
    uint8_t lengths[MOST_LITERALS + DISTANCES + 138] = {0}, own[sizeof header_order] = {0};
    int literals = 257 + (int)take_bits(stream, 5), distances = 1 + (int)take_bits(stream, 5);
    int count = 4 + (int)take_bits(stream, 4), at = 0;
    if (literals > MOST_LITERALS || distances > DISTANCES)
        return 0;
    for (int i = 0; i < count; i++)
        own[header_order[i]] = (uint8_t)take_bits(stream, 3);
    if (!make_code(stream->distances, HEADER_BITS, own, sizeof own, plain_entry, 0))
        return 0;
    while (at < literals + distances && stream->count >= 0) {
        refill(&stream->in, stream->end, &stream->bits, &stream->count);
        uint32_t entry = stream->distances[low_bits(stream->bits, HEADER_BITS)], symbol = entry >> 16;
        take_bits(stream, bits_of(entry));
        if (symbol < 16) {
            lengths[at++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && !at)
            return 0;
        int repeat = symbol == 16 ? 3 + (int)take_bits(stream, 2)
                   : symbol == 17 ? 3 + (int)take_bits(stream, 3) : 11 + (int)take_bits(stream, 7);
        memset(lengths + at, symbol == 16 ? lengths[at - 1] : 0, (size_t)repeat);
        at += repeat;
    }
    if (at != literals + distances || !lengths[END_OF_BLOCK]
        || !make_code(stream->literals, LITERAL_BITS, lengths, literals, literal_entry, 0)
        || !make_code(stream->distances, DISTANCE_BITS, lengths + literals, distances, distance_entry, 1))
        return 0;
    return 1;
}

/* The tables of the fixed codes, none of which is longer than the bits that they look up at once. */
static struct {
    uint32_t literals[1 << LITERAL_BITS], distances[1 << DISTANCE_BITS];
    int are_made;
} fixed;

__attribute__((constructor)) static void prepare_fixed_codes(void)
{
    uint8_t lengths[SJ_MOST_SYMBOLS];
    memset(lengths, 8, sizeof lengths);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    fixed.are_made = make_code(fixed.literals, LITERAL_BITS, lengths, SJ_MOST_SYMBOLS, literal_entry, 0);
    memset(lengths, 5, 32);
    fixed.are_made = fixed.are_made && make_code(fixed.distances, DISTANCE_BITS, lengths, 32, distance_entry, 0);
}

static int fixed_codes(sj_inflater *stream)
{
    memcpy(stream->literals, fixed.literals, sizeof fixed.literals);
    memcpy(stream->distances, fixed.distances, sizeof fixed.distances);
    return fixed.are_made;
}

static int begin_block(sj_inflater *stream)
{
    stream->is_last = (int)take_bits(stream, 1);
    uint32_t kind = take_bits(stream, 2);
    stream->is_coded = kind != 0;
    if (kind == 0 && stream->count >= 0) {
        align(stream);
        uint32_t length = take_bits(stream, 16);
        if ((length ^ take_bits(stream, 16)) != 0xffff)
            return 0;
        stream->stored = length;
        if (stream->count >= 0)
            align(stream);
    } else if (kind == 3 || !(kind == 1 ? fixed_codes(stream) : read_codes(stream)))
        return 0;
    return stream->count >= 0;
}

/* Sixteen bytes, which may overlap with their copy. */
static inline void copy_16(uint8_t *out, const uint8_t *from)
{
    uint64_t words[2];
    memcpy(words, from, sizeof words);
    memcpy(out, words, sizeof words);
}

/* Write `length` bytes and some more, up to SJ_SLACK bytes in total: an unpredictable loop end costs more than the extra
 * bytes. The bytes repeat earlier output that ends at `out` or before it. */
static inline void copy(uint8_t *out, int64_t distance, int64_t length)
{
    const uint8_t *from = out - distance;
    uint8_t *end = out + length;
    if (distance >= 16) {
        for (int i = 0; i < 64; i += 16)
            copy_16(out + i, from + i);
        for (int i = 64; i < length; i += 64)
            for (int j = 0; j < 64; j += 16)
                copy_16(out + i + j, from + i + j);
    } else if (distance == 1) {
        uint8_t same[16];
        memset(same, *from, 16);
        do {
            memcpy(out, same, 16);
            out += 16;
        } while (out < end);
    } else {
        for (; distance < 16 && out < end; distance *= 2) {
            copy_16(out, from);
            out += distance;
        }
        for (; out < end; out += 16, from += 16)
            copy_16(out, from);
    }
}

/* Inflate symbols until the block ends, `at` reaches the limit, or the stream is invalid. */
static int inflate_symbols(sj_inflater *stream, uint8_t *base, int64_t *at, int64_t limit)
{
    const uint8_t *in = stream->in, *end = stream->end;
    uint8_t *out = base + *at, *stop = base + limit;
    const uint32_t *literals = stream->literals, *distances = stream->distances;
    uint64_t bits = stream->bits;
    int count = stream->count, status = SJ_FINE;
    refill(&in, end, &bits, &count);
    uint32_t entry = literals[low_bits(bits, LITERAL_BITS)];
    /* The entry is looked up before the previous copy, which may be predicted wrongly. */
    while (out < stop && count >= 0) {
        if (entry & LITERAL) {
            for (int entries = 0; entries < MOST_ENTRIES && entry & LITERAL; entries++) {
                *out++ = (uint8_t)(entry >> 16);
                bits >>= bits_of(entry);
                count -= bits_of(entry);
                entry = literals[low_bits(bits, LITERAL_BITS)];
            }
            refill(&in, end, &bits, &count);
            continue;
        }
        if (entry & LONGER)
            entry = longer_entry(literals, LITERAL_BITS, entry, bits);
        int64_t length = value_of(entry, bits);
        bits >>= bits_of(entry);
        count -= bits_of(entry);
        if (entry & (LITERAL | OTHER)) {
            if (entry & LITERAL) {
                *out++ = (uint8_t)(entry >> 16);
                refill(&in, end, &bits, &count);
                entry = literals[low_bits(bits, LITERAL_BITS)];
                continue;
            }
            if (entry >> 16)
                status = SJ_BAD_DATA;
            stream->is_coded = 0;
            break;
        }
        entry = distances[low_bits(bits, DISTANCE_BITS)];
        if (entry & LONGER)
            entry = longer_entry(distances, DISTANCE_BITS, entry, bits);
        int64_t distance = value_of(entry, bits);
        bits >>= bits_of(entry);
        count -= bits_of(entry);
        if ((entry & OTHER) || distance > out - base || distance > stream->reach) {
            status = SJ_BAD_DATA;
            break;
        }
        refill(&in, end, &bits, &count);
        entry = literals[low_bits(bits, LITERAL_BITS)];
        copy(out, distance, length);
        out += length;
    }
    stream->in = in, stream->bits = bits, stream->count = count;
    *at = out - base;
    return count < 0 ? SJ_BAD_DATA : status;
}

int sj_inflate_some(sj_inflater *stream, uint8_t *out, int64_t *at, int64_t limit)
{
    while (*at < limit && !stream->has_ended) {
        if (stream->stored) {
            int64_t count = stream->stored;
            if (count > stream->end - stream->in)
                return SJ_BAD_DATA;
            if (count > limit - *at)
                count = limit - *at;
            memcpy(out + *at, stream->in, (size_t)count);
            stream->in += count, stream->stored -= count, *at += count;
        } else if (stream->is_coded) {
            if (inflate_symbols(stream, out, at, limit) != SJ_FINE)
                return SJ_BAD_DATA;
        } else if (stream->is_last) {
            stream->has_ended = 1;
        } else if (!begin_block(stream))
            return SJ_BAD_DATA;
    }
    return SJ_FINE;
}

int sj_inflate_begin(sj_inflater *stream, const uint8_t *data, int64_t length)
{
    stream->in = data, stream->end = data + length;
    stream->bits = 0, stream->count = 0, stream->stored = 0;
    stream->is_last = stream->is_coded = stream->has_ended = 0;
    uint32_t method = take_bits(stream, 8), flags = take_bits(stream, 8), window = 8 + (method >> 4);
    stream->reach = (int64_t)1 << window;
    return stream->count >= 0 && (method & 15) == 8 && window < 16 && (method << 8 | flags) % 31 == 0 && !(flags & 32)
         ? SJ_FINE : SJ_BAD_DATA;
}

int sj_inflate_matches(sj_inflater *stream, uint32_t checksum)
{
    uint32_t sum = 0;
    if (stream->count < 0)
        return 0;
    align(stream);
    for (int i = 0; i < 4; i++)
        sum = sum << 8 | take_bits(stream, 8);
    return stream->count >= 0 && sum == checksum;
}
