/* A label map (z, y, x) or runs of voxels -> the corners on the surface of a region, or its border, as a list. A mask -> its border, and the mask after growing.
 *
 * Voxels of the region are bits of words, so that 64 corners are passed at once where all voxels around them are
 * alike. */
#include "kernel.h"

#include <stdlib.h>

#define WORD 64
/* Kinds of borders. */
#define OPEN_ENDS 1
#define CORNERS 2

/* A map, whose planes and rows are this many bytes apart, and which of its labels the region has; without a map, the
 * runs of the region. */
typedef struct {
    const uint8_t *map;
    int32_t size;
    int64_t depth, height, width, plane_step, row_step;
    const uint8_t *chosen;
    int64_t labels;
    int64_t lone; /* the only label, or -1 */
    const int32_t *starts, *ends;
    int64_t runs, row_length, plane_length, origin; /* of positions; that of the region's first voxel */
} region;

/* Planes of rows of bits, with an empty row before the first one and behind the last one, and whether each row has
 * bits; and a row of flags. */
typedef struct {
    uint64_t *bits;
    uint8_t *filled, *flags;
    int64_t words, rows;
} space;

static inline uint64_t *plane_of(const space *in, int64_t number) { return in->bits + number * in->rows * in->words; }
static inline uint8_t *filled_of(const space *in, int64_t number) { return in->filled + number * in->rows; }

/* Return whether there is memory for some planes. */
static int open_space(space *in, const region *of, int64_t planes)
{
    in->words = of->width / WORD + 1, in->rows = of->height + 2;
    int64_t words = planes * in->rows * in->words;
    in->bits = calloc((size_t)(words + in->words * WORD / 8 + planes * in->rows / 8 + 1), sizeof *in->bits);
    in->flags = (uint8_t *)(in->bits + words), in->filled = in->flags + in->words * WORD;
    return in->bits != NULL;
}

/* The list of corners: their positions and the codes of their voxels; without positions, they are only counted. */
typedef struct {
    int32_t *positions;
    uint8_t *codes;
    int64_t room, count;
} corners;

static inline uint32_t label_of(const uint8_t *at, int size)
{
    uint32_t label = 0;
    memcpy(&label, at, (size_t)size);
    return label;
}

/* Write whether each voxel of a row has a label of the region; the size of a label is a constant for the compiler, which
 * compares many at once if there is one label. */
static inline void flag_row(const region *of, const uint8_t *restrict row, int size, uint8_t *restrict flags)
{
    const int64_t width = of->width;
    const uint32_t lone = (uint32_t)of->lone, labels = (uint32_t)of->labels;
    const uint8_t *chosen = of->chosen;
    if (of->lone >= 0 && size == 1)
        for (int64_t x = 0; x < width; x++)
            flags[x] = row[x] == (uint8_t)lone;
    else if (of->lone >= 0)
        for (int64_t x = 0; x < width; x++)
            flags[x] = label_of(row + x * size, size) == lone;
    else
        for (int64_t x = 0; x < width; x++) {
            uint32_t label = label_of(row + x * size, size);
            flags[x] = label < labels ? chosen[label] : 0;
        }
}

/* Pack flags of 0 and 1, eight at once; those beyond the width are 0. Return whether any is 1. */
static int pack_row(const uint8_t *flags, int64_t words, uint64_t *bits)
{
    uint64_t any = 0;
    for (int64_t word = 0; word < words; word++) {
        uint64_t packed = 0;
        for (int part = 0; part < 8; part++) {
            uint64_t bytes = sj_load(flags + WORD * word + 8 * part);
            if (bytes)
                packed |= bytes * 0x0102040810204080u >> 56 << (8 * part);
        }
        bits[word] = packed;
        any |= packed;
    }
    return any != 0;
}

/* Write the runs of a plane as bits. */
static void read_runs(const region *of, int64_t z, const space *in, uint64_t *plane, uint8_t *filled)
{
    int64_t start = of->origin + z * of->plane_length, run = 0, more = of->runs;
    memset(plane, 0, (size_t)(in->rows * in->words) * sizeof *plane);
    memset(filled, 0, (size_t)in->rows);
    while (more) {
        int64_t half = more / 2;
        if (of->starts[run + half] < start)
            run += half + 1, more -= half + 1;
        else
            more = half;
    }
    for (int64_t y = 0; y < of->height && run < of->runs; y++, start += of->row_length)
        for (; run < of->runs && of->starts[run] < start + of->width; run++) {
            sj_set_bits(plane + (y + 1) * in->words, of->starts[run] - start, of->ends[run] - start);
            filled[y + 1] = 1;
        }
}

/* Read a plane of the region into bits, behind an empty row; planes outside are empty. */
static void read_plane(const region *of, int64_t z, const space *in, int64_t number)
{
    uint64_t *plane = plane_of(in, number);
    uint8_t *filled = filled_of(in, number);
    if (z < 0 || z >= of->depth) {
        memset(plane, 0, (size_t)(in->rows * in->words) * sizeof *plane);
        memset(filled, 0, (size_t)in->rows);
        return;
    }
    if (!of->map) {
        read_runs(of, z, in, plane, filled);
        return;
    }
    for (int64_t y = 0; y < of->height; y++) {
        const uint8_t *row = of->map + z * of->plane_step + y * of->row_step;
        if (of->size == 1)
            flag_row(of, row, 1, in->flags);
        else if (of->size == 2)
            flag_row(of, row, 2, in->flags);
        else
            flag_row(of, row, 4, in->flags);
        filled[y + 1] = (uint8_t)pack_row(in->flags, in->words, plane + (y + 1) * in->words);
    }
}

/* The code of a corner by the voxels to the left and right of it in four rows, as pairs of bits. */
#define CODE(pairs) \
    (((pairs) & 1) | ((pairs) >> 1 & 2) | ((pairs) >> 2 & 4) | ((pairs) >> 3 & 8) | ((pairs) & 2) << 3 | ((pairs) & 8) << 2 \
     | ((pairs) & 32) << 1 | ((pairs) & 128))
#define FOUR(pairs) CODE(pairs), CODE((pairs) + 1), CODE((pairs) + 2), CODE((pairs) + 3)
#define MORE(pairs) FOUR(pairs), FOUR((pairs) + 4), FOUR((pairs) + 8), FOUR((pairs) + 12)
#define MANY(pairs) MORE(pairs), MORE((pairs) + 16), MORE((pairs) + 32), MORE((pairs) + 48)
static const uint8_t codes_of_pairs[256] = {MANY(0), MANY(64), MANY(128), MANY(192)};
#undef CODE
#undef FOUR
#undef MORE
#undef MANY

/* The corners that are written at once, since a branch for each would often be wrong, and the room for those too many. */
#define AT_ONCE 4

/* List the corners at some bits of a word, given the voxels to the left and to the right of them in four rows. */
static void list_corners(corners *to, int64_t position, uint64_t bits, const uint64_t *left, const uint64_t *right)
{
    const uint64_t one = left[0], two = left[1], three = left[2], four = left[3], last = (uint64_t)1 << (WORD - 1);
    int32_t *positions = to->positions + to->count;
    uint8_t *codes = to->codes + to->count;
    to->count += sj_ones(bits);
    if (!to->positions)
        return;
    /* The last corner is also the one behind those that there are; its right voxels are in the next word. */
    for (uint64_t rest = bits & ~last; rest; positions += AT_ONCE, codes += AT_ONCE)
        for (int i = 0; i < AT_ONCE; i++, rest &= rest - 1) {
            int bit = __builtin_ctzll(rest | last);
            uint32_t pairs = (uint32_t)(one >> bit & 3) | (uint32_t)(two >> bit & 3) << 2 | (uint32_t)(three >> bit & 3) << 4
                | (uint32_t)(four >> bit & 3) << 6;
            positions[i] = (int32_t)(position + bit);
            codes[i] = codes_of_pairs[pairs];
        }
    if (bits & last) {
        uint32_t pairs = 0;
        for (int part = 0; part < 4; part++)
            pairs |= (uint32_t)(left[part] >> (WORD - 1) | right[part] >> (WORD - 1) << 1) << (2 * part);
        to->positions[to->count - 1] = (int32_t)(position + WORD - 1);
        to->codes[to->count - 1] = codes_of_pairs[pairs];
    }
}

/* List the corners of a row between voxels that are not all alike, given the four rows of bits around them. */
static void list_row(corners *to, int64_t position, const uint64_t *const *rows, int64_t words)
{
    uint64_t carried[4] = {0, 0, 0, 0}, carried_any = 0;
    for (int64_t word = 0; word < words; word++) {
        uint64_t left[4], right[4], any = rows[0][word] | rows[1][word] | rows[2][word] | rows[3][word];
        uint64_t all = ~(uint64_t)0;
        if (!(any | carried_any))
            continue;
        carried_any = any >> (WORD - 1);
        for (int part = 0; part < 4; part++) {
            right[part] = rows[part][word];
            left[part] = right[part] << 1 | carried[part];
            carried[part] = right[part] >> (WORD - 1);
            any |= left[part] | right[part], all &= left[part] & right[part];
        }
        if (any & ~all)
            list_corners(to, position + WORD * word, any & ~all, left, right);
    }
}

/* List the corners from a row of corners on; stop before a row that might not fit, and return where. */
static int64_t list_from(const region *of, const space *in, int64_t begun, corners *to)
{
    int64_t rows = of->height + 1, first = begun / rows;
    read_plane(of, first - 1, in, (first + 1) & 1);
    for (int64_t z = first; z <= of->depth; z++) {
        const uint64_t *before = plane_of(in, (z + 1) & 1), *behind = plane_of(in, z & 1);
        const uint8_t *filled = filled_of(in, 0), *also = filled_of(in, 1);
        read_plane(of, z, in, z & 1);
        for (int64_t y = z == first ? begun % rows : 0; y < rows; y++) {
            const uint64_t *around[4] = {
                before + y * in->words, behind + y * in->words, before + (y + 1) * in->words, behind + (y + 1) * in->words
            };
            if (!(filled[y] | filled[y + 1] | also[y] | also[y + 1]))
                continue;
            if (to->positions && to->room - to->count < of->width + AT_ONCE)
                return z * rows + y;
            list_row(to, (z * rows + y) * (of->width + 1), around, in->words);
        }
    }
    return rows * (of->depth + 1);
}

/* List all corners from a row on. */
static int list_surface(const region *of, corners *to, int64_t *begun, int64_t *count)
{
    space in;
    if (!open_space(&in, of, 2))
        return SJ_NO_MEMORY;
    *begun = list_from(of, &in, *begun, to);
    *count = to->count;
    free(in.bits);
    return *begun < (of->depth + 1) * (of->height + 1) ? SJ_FULL : SJ_FINE;
}

/* Return whether a list may be filled on from a row among so many. */
static int can_go_on(const int64_t *begun, int64_t rows, const int64_t *count, int64_t room)
{
    return begun && count && *count >= 0 && *count <= room && *begun >= 0 && *begun <= rows;
}

static int is_region(const region *of)
{
    return of->map && of->chosen && (of->size == 1 || of->size == 2 || of->size == 4) && of->labels > 0 && of->labels <= INT32_MAX
        && sj_is_volume(of->depth, of->height, of->width, INT32_MAX)
        && sj_is_volume(of->depth + 1, of->height + 1, of->width + 1, INT32_MAX)
        && (of->height == 1 || of->row_step >= of->width * of->size)
        && (of->depth == 1 || of->plane_step >= (of->height - 1) * of->row_step + of->width * of->size);
}

/* List the corners between voxels of a region and of its outside, from a row of corners on, in the order of the volume:
 * their positions among all corners, and the bits 4 x + 2 y + z of their voxels in the region. The space is filled up to
 * a count; without positions, all are counted. */
SJ_EXPORT int sj_surface(
    const uint8_t *map, int32_t size, int64_t depth, int64_t height, int64_t width, int64_t plane_step, int64_t row_step,
    const uint8_t *chosen, int64_t labels, int32_t *positions, uint8_t *codes, int64_t room, int64_t *begun,
    int64_t *count)
{
    region of = {map, size, depth, height, width, plane_step, row_step, chosen, labels, -1, NULL, NULL, 0, 0, 0, 0};
    corners to = {positions, codes, room, count ? *count : 0};
    if (!is_region(&of) || (positions && !codes) || !can_go_on(begun, (depth + 1) * (height + 1), count, room))
        return SJ_BAD_CALL;
    int64_t regions = 0;
    of.labels = labels = size == 1 && labels > 256 ? 256 : labels;
    for (int64_t label = 0; label < labels; label++)
        if (chosen[label] > 1)
            return SJ_BAD_CALL;
        else if (chosen[label])
            of.lone = label, regions++;
    of.lone = regions == 1 ? of.lone : -1;
    return list_surface(&of, &to, begun, count);
}

/* ── masks ───────────────────────────────────────────────────────────────── */

/* List the voxels of a row of bits that have a neighbour outside, given the rows around it. With open ends, nothing is
 * beside the row. */
static int64_t list_border(
    const uint64_t *row, const uint64_t *const *around, int64_t width, int open_ends, int64_t position, int32_t *positions)
{
    int64_t words = width / WORD + 1, count = 0;
    uint64_t carried = open_ends != 0;
    for (int64_t word = 0; word < words; word++) {
        uint64_t bits = row[word], inner = bits << 1 | carried, right = bits >> 1;
        carried = bits >> (WORD - 1);
        if (!bits)
            continue;
        if (word + 1 < words)
            right |= row[word + 1] << (WORD - 1);
        if (open_ends && (width - 1) / WORD == word)
            right |= (uint64_t)1 << (width - 1) % WORD;
        inner &= right;
        for (int side = 0; side < 4; side++)
            inner &= around[side][word];
        for (uint64_t left = bits & ~inner; left; left &= left - 1)
            positions[count++] = (int32_t)(position + WORD * word + __builtin_ctzll(left));
    }
    return count;
}

/* List the voxels of a row of bits that have one of 26 neighbours outside, given the row and the eight around it. */
static int64_t list_corners_of_row(
    const uint64_t *row, const uint64_t *const *around, int64_t words, int64_t position, int32_t *positions)
{
    int64_t count = 0;
    uint64_t carried = 0, full = 0;
    for (int64_t word = -1; word < words; word++) {
        uint64_t next = word + 1 < words ? row[word + 1] : 0;
        for (int side = 0; next && side < 8; side++)
            next &= around[side][word + 1];
        if (word >= 0) {
            uint64_t inner = full & (full << 1 | carried) & (full >> 1 | next << (WORD - 1));
            for (uint64_t left = row[word] & ~inner; left; left &= left - 1)
                positions[count++] = (int32_t)(position + WORD * word + __builtin_ctzll(left));
            carried = full >> (WORD - 1);
        }
        full = next;
    }
    return count;
}

/* Return a mask as a region of one label. */
static region region_of(const uint8_t *mask, int64_t depth, int64_t height, int64_t width)
{
    static const uint8_t chosen[2] = {0, 1};
    int fits = height > 0 && height < SJ_MOST_SIDE && width > 0 && width < SJ_MOST_SIDE;
    return (region){
        mask, 1, depth, height, width, fits ? height * width : 0, width, chosen, 2, 1, NULL, NULL, 0, 0, 0, 0
    };
}

/* List the border of a region from a row on. */
static int list_borders(const region *of, int32_t kind, int32_t *positions, int64_t room, int64_t *begun, int64_t *count)
{
    const int64_t depth = of->depth, height = of->height, width = of->width;
    int open_ends = kind == OPEN_ENDS;
    space in;
    if (!open_space(&in, of, 3))
        return SJ_NO_MEMORY;
    int64_t words = in.words, row = *begun, ready = row / height - 2; /* the last plane of bits */
    for (; row < depth * height && room - *count >= width; row++) {
        int64_t z = row / height, y = row % height;
        while (ready < z + 1) {
            ready++;
            read_plane(of, ready, &in, (ready + 3) % 3);
        }
        if (!filled_of(&in, z % 3)[y + 1])
            continue;
        const uint64_t *at = plane_of(&in, z % 3) + (y + 1) * words;
        const uint64_t *around[4] = {at - words, at + words, plane_of(&in, (z + 2) % 3) + (y + 1) * words,
                                     plane_of(&in, (z + 1) % 3) + (y + 1) * words};
        if (open_ends) {
            around[0] = y ? around[0] : at, around[1] = y + 1 < height ? around[1] : at;
            around[2] = z ? around[2] : at, around[3] = z + 1 < depth ? around[3] : at;
        }
        if (kind == CORNERS) {
            const uint64_t *all[8] = {around[0], around[1], around[2], around[3], around[2] - words, around[2] + words,
                                      around[3] - words, around[3] + words};
            *count += list_corners_of_row(at, all, words, row * width, positions + *count);
        } else
            *count += list_border(at, around, width, open_ends, row * width, positions + *count);
    }
    *begun = row;
    free(in.bits);
    return row < depth * height ? SJ_FULL : SJ_FINE;
}

/* List the positions of the voxels of a mask of 0 and 1 that have one of six neighbours outside it, from a row on, in
 * the order of the volume; the outside of the volume counts unless ends are open (1), and 26 neighbours count with
 * corners (2). The space is filled up to a count. */
SJ_EXPORT int sj_border(
    const uint8_t *mask, int64_t depth, int64_t height, int64_t width, int32_t kind, int32_t *positions, int64_t room,
    int64_t *begun, int64_t *count)
{
    region of = region_of(mask, depth, height, width);
    if (!is_region(&of) || kind < 0 || kind > CORNERS || !positions || !can_go_on(begun, depth * height, count, room))
        return SJ_BAD_CALL;
    return list_borders(&of, kind, positions, room, begun, count);
}

/* Read the region of runs in a box, from and to along z, y and x, that holds them all; rows and planes are as long as
 * those of positions. */
static int open_runs(
    region *of, const int32_t *starts, const int32_t *ends, int64_t count, int64_t height, int64_t width,
    const int64_t *box)
{
    const int64_t sides[3] = {SJ_MOST_SIDE, height, width};
    int32_t end = 0;
    if (!starts || !ends || count < 0 || !box || !sj_is_volume(1, height, width, INT32_MAX))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++)
        if (box[2 * axis] < 0 || box[2 * axis + 1] <= box[2 * axis] || box[2 * axis + 1] > sides[axis])
            return SJ_BAD_CALL;
    *of = (region){.depth = box[1] - box[0], .height = box[3] - box[2], .width = box[5] - box[4], .lone = -1,
                   .starts = starts, .ends = ends, .runs = count, .row_length = width, .plane_length = height * width,
                   .origin = (box[0] * height + box[2]) * width + box[4]};
    if (!sj_is_volume(of->depth + 1, of->height + 1, of->width + 1, INT32_MAX)
        || !sj_is_volume(box[1], height, width, INT32_MAX))
        return SJ_BAD_CALL;
    const uint32_t row_length = (uint32_t)width, rows = (uint32_t)height;
    const uint32_t first_row = (uint32_t)(box[0] * height), last_row = (uint32_t)(box[1] * height);
    for (int64_t run = 0; run < count; run++) {
        int32_t start = starts[run];
        if (start < end)
            return SJ_BAD_DATA;
        uint32_t row = (uint32_t)start / row_length, x = (uint32_t)start - row * row_length, y = row % rows;
        if (row < first_row || row >= last_row || y < box[2] || y >= box[3] || x < box[4] || ends[run] <= start
            || ends[run] - start > box[5] - x)
            return SJ_BAD_DATA;
        end = ends[run];
    }
    return SJ_FINE;
}

/* List the corners of runs in a box as those of a label map. */
SJ_EXPORT int sj_run_surface(
    const int32_t *starts, const int32_t *ends, int64_t runs, int64_t height, int64_t width, const int64_t *box,
    int32_t *positions, uint8_t *codes, int64_t room, int64_t *begun, int64_t *count)
{
    region of;
    int status = open_runs(&of, starts, ends, runs, height, width, box);
    if (status != SJ_FINE)
        return status;
    corners to = {positions, codes, room, count ? *count : 0};
    if ((positions && !codes) || !can_go_on(begun, (of.depth + 1) * (of.height + 1), count, room))
        return SJ_BAD_CALL;
    return list_surface(&of, &to, begun, count);
}

/* List the border of runs in a box as that of a mask. */
SJ_EXPORT int sj_run_border(
    const int32_t *starts, const int32_t *ends, int64_t runs, int64_t height, int64_t width, const int64_t *box,
    int32_t kind, int32_t *positions, int64_t room, int64_t *begun, int64_t *count)
{
    region of;
    int status = open_runs(&of, starts, ends, runs, height, width, box);
    if (status != SJ_FINE)
        return status;
    if (kind < 0 || kind > CORNERS || !positions || !can_go_on(begun, of.depth * of.height, count, room))
        return SJ_BAD_CALL;
    return list_borders(&of, kind, positions, room, begun, count);
}

/* Write a row of bits united with its neighbours: with the rows in its plane and before and behind it, widened by a
 * voxel, and with those beside the latter. */
static void grow_row(const uint64_t *row, int64_t words, int64_t plane, int64_t width, uint64_t *out)
{
    uint64_t carried = 0, next = 0, near[2];
#define NEAR(at) (row[at] | row[(at) - words] | row[(at) + words] | row[(at) - plane] | row[(at) + plane])
    near[0] = NEAR(0);
    for (int64_t word = 0; word < words; word++) {
        near[1] = word + 1 < words ? NEAR(word + 1) : 0;
        next = near[1] << (WORD - 1);
        out[word] = near[0] | near[0] << 1 | carried | near[0] >> 1 | next | row[word - plane - words]
            | row[word - plane + words] | row[word + plane - words] | row[word + plane + words];
        carried = near[0] >> (WORD - 1);
        near[0] = near[1];
    }
#undef NEAR
    out[words - 1] &= ((uint64_t)1 << width % WORD) - 1;
}

/* Write bits as bytes of 0 and 1, eight at once. */
static void unpack_row(const uint64_t *bits, int64_t width, uint8_t *out)
{
    for (int64_t x = 0; x < width; x += 8) {
        uint64_t bytes = (bits[x / WORD] >> x % WORD & 0xff) * 0x0101010101010101u & 0x8040201008040201u;
        bytes = (bytes + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
        memcpy(out + x, &bytes, (size_t)(width - x < 8 ? width - x : 8));
    }
}

/* Write a mask of 0 and 1 after some steps to 18 neighbours. */
SJ_EXPORT int sj_grow_volume(
    const uint8_t *mask, int64_t depth, int64_t height, int64_t width, int64_t steps, uint8_t *out)
{
    region of = region_of(mask, depth, height, width);
    if (!is_region(&of) || !out || steps < 0 || steps > SJ_MOST_SIDE)
        return SJ_BAD_CALL;
    /* Empty rows and planes are around both masks. */
    space in;
    if (!open_space(&in, &of, 2 * (depth + 2)))
        return SJ_NO_MEMORY;
    int64_t words = in.words, plane = in.rows * words;
    uint64_t *const bits[2] = {in.bits, plane_of(&in, depth + 2)};
    for (int64_t z = 0; z < depth; z++)
        read_plane(&of, z, &in, z + 1);
    for (int64_t step = 0; step < steps; step++)
        for (int64_t z = 0; z < depth; z++)
            for (int64_t y = 0; y < height; y++) {
                int64_t row = (z + 1) * plane + (y + 1) * words;
                grow_row(bits[step & 1] + row, words, plane, width, bits[~step & 1] + row);
            }
    for (int64_t z = 0; z < depth; z++)
        for (int64_t y = 0; y < height; y++)
            unpack_row(bits[steps & 1] + (z + 1) * plane + (y + 1) * words, width, out + (z * height + y) * width);
    free(in.bits);
    return SJ_FINE;
}
