/* DEFLATE (RFC 1951) in zlib's frame (RFC 1950) -> bytes, one buffer at a time.
 *
 * It rejects everything that zlib rejects, and a little more, so every inflater gives the same bytes for a stream
 * that it accepts. */
#include "inflate.h"

#define LENGTHS 29
#define DISTANCES 30
#define END_OF_BLOCK 256
#define MOST_LITERALS (END_OF_BLOCK + 1 + LENGTHS)
/* The literals that are decoded after another one before bits are loaded: of 56 bits, they need 15 + 4 * 10. */
#define MORE_LITERALS 4

/* An entry of a table: bits of the code and its extra bits, bits of the code << 5, a kind, a value << 16.
 * 0 if the code is longer than the table's. */
enum { LITERAL = 1 << 9, OTHER = 1 << 10 /* the end of a block; with the next bit, no symbol */, NONE = 3 << 10 };

static uint32_t entry_of(uint32_t value, uint32_t extras) { return value << 16 | extras; }

/* The total bits of an entry, and the bits of its code. */
static int bits_of(uint32_t entry) { return (int)(entry & 31); }
static int code_bits_of(uint32_t entry) { return (int)(entry >> 5 & 15); }
static uint32_t with_bits(uint32_t entry, int bits) { return entry + (uint32_t)bits * 33; }

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

/* Build a code from the lengths of its symbols' codes; return whether it is complete, with a symbol for all bits.
 *
 * A distance code may also have a single one-bit symbol, or none. */
static int make_code(sj_code *code, const uint8_t *lengths, int count, uint32_t (*entry)(int), int may_lack)
{
    int places[SJ_LONGEST_CODE + 2] = {0}, used = 0;
    memset(code->counts, 0, sizeof code->counts);
    for (int symbol = 0; symbol < count; symbol++)
        code->counts[lengths[symbol]]++;
    code->counts[0] = 0;
    for (int length = 1; length <= SJ_LONGEST_CODE; length++) {
        places[length + 1] = places[length] + code->counts[length];
        used += code->counts[length] << (SJ_LONGEST_CODE - length);
    }
    int symbols = places[SJ_LONGEST_CODE + 1], whole = used == 1 << SJ_LONGEST_CODE;
    if (!whole && !(may_lack && (symbols == 0 || (symbols == 1 && code->counts[1] == 1))))
        return 0;
    for (int symbol = 0; symbol < count; symbol++)
        if (lengths[symbol])
            code->entries[places[lengths[symbol]]++] = entry(symbol);
    for (int slot = 0; slot < SJ_CODE_SLOTS; slot++)
        code->table[slot] = whole ? 0 : with_bits(NONE, 1);
    code->long_first = code->long_at = 0;
    for (int length = 1; length <= SJ_CODE_BITS; length++) {
        code->long_at += code->counts[length];
        code->long_first = (code->long_first + code->counts[length]) << 1;
    }
    uint32_t next = 0; /* a code in the stream's order, first bit lowest */
    for (int length = 1, at = 0; length <= SJ_CODE_BITS; length++)
        for (int end = at + code->counts[length]; at < end; at++) {
            for (uint32_t slot = next; slot < SJ_CODE_SLOTS; slot += 1u << length)
                code->table[slot] = with_bits(code->entries[at], length);
            uint32_t bit = 1u << (length - 1);
            for (; next & bit; bit >>= 1)
                next ^= bit;
            next |= bit;
        }
    return 1;
}

/* Look up a code that is longer than the table's bits, bit by bit from there on. */
static uint32_t long_entry(const sj_code *code, uint64_t bits)
{
    int first = code->long_first, at = code->long_at, word = 0;
    for (int length = 1; length <= SJ_CODE_BITS; length++, bits >>= 1)
        word = word << 1 | (int)(bits & 1);
    for (int length = SJ_CODE_BITS + 1; length <= SJ_LONGEST_CODE; length++, bits >>= 1) {
        word = word << 1 | (int)(bits & 1);
        int count = code->counts[length];
        if (word - first < count)
            return with_bits(code->entries[at + word - first], length);
        at += count;
        first = (first + count) << 1;
    }
    return with_bits(NONE, 1);
}

static uint64_t low_bits(uint64_t bits, int count) { return bits & (((uint64_t)1 << count) - 1); }

/* Return the value of an entry plus the extra bits, which follow the code. */
static int64_t value_of(uint32_t entry, uint64_t bits)
{
    return (int64_t)(entry >> 16) + (int64_t)(low_bits(bits, bits_of(entry)) >> code_bits_of(entry));
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
    if (!make_code(&stream->distances, own, sizeof own, plain_entry, 0))
        return 0;
    while (at < literals + distances && stream->count >= 0) {
        refill(&stream->in, stream->end, &stream->bits, &stream->count);
        uint32_t entry = stream->distances.table[low_bits(stream->bits, SJ_CODE_BITS)], symbol = entry >> 16;
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
    return at == literals + distances && lengths[END_OF_BLOCK]
        && make_code(&stream->literals, lengths, literals, literal_entry, 0)
        && make_code(&stream->distances, lengths + literals, distances, distance_entry, 1);
}

static int fixed_codes(sj_inflater *stream)
{
    uint8_t lengths[SJ_MOST_SYMBOLS];
    memset(lengths, 8, sizeof lengths);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    int made = make_code(&stream->literals, lengths, SJ_MOST_SYMBOLS, literal_entry, 0);
    memset(lengths, 5, 32);
    return made && make_code(&stream->distances, lengths, 32, distance_entry, 0);
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
    const uint32_t *literals = stream->literals.table, *distances = stream->distances.table;
    uint64_t bits = stream->bits;
    int count = stream->count, status = SJ_FINE;
    refill(&in, end, &bits, &count);
    uint32_t entry = literals[low_bits(bits, SJ_CODE_BITS)];
    /* The entry is looked up before the previous copy, which may be predicted wrongly. */
    while (out < stop && count >= 0) {
        if (!entry)
            entry = long_entry(&stream->literals, bits);
        int64_t length = value_of(entry, bits);
        bits >>= bits_of(entry);
        count -= bits_of(entry);
        if (entry & LITERAL) {
            *out++ = (uint8_t)length;
            for (int more = 0; more < MORE_LITERALS; more++) {
                entry = literals[low_bits(bits, SJ_CODE_BITS)];
                if (!(entry & LITERAL))
                    break;
                *out++ = (uint8_t)(entry >> 16);
                bits >>= bits_of(entry);
                count -= bits_of(entry);
            }
            refill(&in, end, &bits, &count);
            entry = literals[low_bits(bits, SJ_CODE_BITS)];
            continue;
        }
        if (entry & OTHER) {
            if ((entry & NONE) == NONE)
                status = SJ_BAD_DATA;
            stream->is_coded = 0;
            break;
        }
        entry = distances[low_bits(bits, SJ_CODE_BITS)];
        if (!entry)
            entry = long_entry(&stream->distances, bits);
        int64_t distance = value_of(entry, bits);
        bits >>= bits_of(entry);
        count -= bits_of(entry);
        if ((entry & OTHER) || distance > out - base || distance > stream->reach) {
            status = SJ_BAD_DATA;
            break;
        }
        refill(&in, end, &bits, &count);
        entry = literals[low_bits(bits, SJ_CODE_BITS)];
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
