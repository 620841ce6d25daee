/* A mask (z, y, x) -> the runs of its voxels along x, in the order of the volume; runs -> the connected component of each
 * run, and their mask; components of two masks -> which of them touch, and the voxels that they share. */
#include "kernel.h"

#include <stdlib.h>

/* The maximum number of rows beside a run that it may join, or touch. */
#define MOST_ROWS 4
#define MOST_TOUCHED 9
/* The bits of a word, and the maximum number of words of a volume for each run if runs are joined by bits. */
#define WORD 64
#define WORDS_PER_RUN 2
/* Eight voxels of a mask. */
#define ONES ((uint64_t)0x0101010101010101u)
/* Numbers have 32 or 64 bits, which is a constant for the compiler. */
#define INLINE static inline __attribute__((always_inline))

/* The start of each run and the voxel after it, in 32 or 64 bits; and the component of each, if there are any. */
typedef struct {
    const void *starts, *ends;
    const int32_t *names;
    int64_t count;
} runs;

INLINE int64_t number_at(const void *numbers, int64_t run, int is_wide)
{
    return is_wide ? ((const int64_t *)numbers)[run] : ((const int32_t *)numbers)[run];
}

static int are_in_order(const runs *of, int is_wide)
{
    for (int64_t run = 0, last = 0; run < of->count; run++) {
        int64_t start = number_at(of->starts, run, is_wide), end = number_at(of->ends, run, is_wide);
        if (start < last || end <= start || end > SJ_MOST_PIXELS)
            return 0;
        last = end;
    }
    return 1;
}

/* Return whether there are runs of these sizes, and names for them if they need any. */
static int is_list(const runs *of, int32_t size, int needs_names)
{
    return of->starts && of->ends && (size == 4 || size == 8) && of->count >= 0 && of->count <= INT32_MAX
        && (of->names || !needs_names);
}

/* Return whether names are from 0 to below an end. */
static int are_names(const runs *of, int64_t end)
{
    int32_t least = 0, greatest = -1;
    for (int64_t run = 0; run < of->count; run++) {
        least = of->names[run] < least ? of->names[run] : least;
        greatest = of->names[run] > greatest ? of->names[run] : greatest;
    }
    return !least && greatest < end;
}

/* Return whether rows are pairs of a step to a row and of the voxels by which runs reach beyond their ends there. */
static int are_rows(const int64_t *rows, int64_t count, int64_t least, int64_t most)
{
    if (!rows || count < 1 || count > most)
        return 0;
    for (int64_t row = 0; row < count; row++)
        if (rows[2 * row] < least || rows[2 * row] > SJ_MOST_PIXELS || rows[2 * row + 1] < 0 || rows[2 * row + 1] > 1)
            return 0;
    return 1;
}

/* ── of one mask ─────────────────────────────────────────────────────────── */

/* Return the first run of a run's component, and halve the way to it. */
static inline int32_t find_root(int32_t *roots, int32_t run)
{
    while (roots[run] != run)
        run = roots[run] = roots[roots[run]];
    return run;
}

/* Join the component of a root with that of a run; return the root of both. */
static inline int32_t join(int32_t *roots, int32_t root, int32_t run)
{
    if (roots[run] == root)
        return root;
    int32_t other = find_root(roots, run);
    if (root < other)
        return roots[other] = root;
    return roots[root] = other;
}

/* Join each run with those that it meets in some rows behind it: by how many voxels it is moved to each, and by how
 * many it is widened there. */
INLINE void join_all(const runs *of, int is_wide, const int64_t *rows, int64_t count, int32_t *roots)
{
    int64_t lowest[MOST_ROWS] = {0};
    for (int64_t run = 0; run < of->count; run++) {
        int32_t root = find_root(roots, (int32_t)run);
        for (int64_t row = 0; row < count; row++) {
            int64_t start = number_at(of->starts, run, is_wide) + rows[2 * row] - rows[2 * row + 1];
            int64_t end = number_at(of->ends, run, is_wide) + rows[2 * row] + rows[2 * row + 1], partner = lowest[row];
            while (partner < of->count && number_at(of->ends, partner, is_wide) <= start)
                partner++;
            lowest[row] = partner;
            for (; partner < of->count && number_at(of->starts, partner, is_wide) < end; partner++)
                root = join(roots, root, (int32_t)partner);
        }
    }
}

/* ── of noise ── */

/* Rows of runs, whose ends are empty as every last row of a plane is, so that 26 neighbours meet in four rows; in pairs, as
 * words of bits. */
typedef struct {
    int64_t width, height, pairs, words;
} grid;

/* Two planes of bits. Voxels of a pair of rows in both planes are neighbours if they are side by side, so they are runs of
 * both: the bits where these start, and the number of the first one of each word. */
typedef struct {
    uint64_t *bits, *starts;
    int32_t *firsts;
} slab;

/* Return whether rows are those of a grid whose words are not far more than the runs. */
static int find_grid(const runs *of, int is_wide, const int64_t *rows, int64_t count, grid *in)
{
    if (count != MOST_ROWS || !of->count || !(rows[1] & rows[3] & rows[5] & rows[7]))
        return 0;
    int64_t width = rows[0], plane = rows[4], height = plane / width;
    if (width < 2 || width > SJ_MOST_SIDE || height < 2 || height > SJ_MOST_SIDE || plane % width
        || rows[2] != plane - width || rows[6] != plane + width)
        return 0;
    *in = (grid){width, height, (height + 1) / 2, width / WORD + 1};
    int64_t depth = (number_at(of->ends, of->count - 1, is_wide) - 1) / plane + 1;
    return depth <= SJ_MOST_SIDE && depth * height * in->words <= WORDS_PER_RUN * of->count;
}

static inline uint64_t *row_of(const grid *in, const slab *from, int64_t plane, int64_t row)
{
    return from->bits + ((plane & 1) * 2 * in->pairs + row) * in->words;
}

/* Return the number of the run of a pair of rows that has a voxel. */
static inline int32_t number_of(const grid *in, const slab *from, int64_t pair, int64_t x)
{
    int64_t word = pair * in->words + x / WORD;
    return from->firsts[word] + (int32_t)sj_ones(from->starts[word] & ~(uint64_t)0 >> (WORD - 1 - x % WORD)) - 1;
}

/* A row of bits, or two that are united, of a pair of rows. */
typedef struct {
    const slab *from;
    int64_t pair;
    const uint64_t *one, *two;
} lane;

/* Join the runs of two pairs of rows at some bits of a word, of which the first ones are so many steps away. */
static inline void
join_bits(const grid *in, int32_t *roots, const lane *of, const lane *to, int64_t word, uint64_t bits, int64_t step)
{
    for (; bits; bits &= bits - 1) {
        int64_t x = WORD * word + __builtin_ctzll(bits);
        int32_t run = number_of(in, of->from, of->pair, x + step), partner = number_of(in, to->from, to->pair, x);
        if (roots[run] != roots[partner])
            join(roots, find_root(roots, run), partner);
    }
}

/* Join the runs of two pairs of rows whose bits are side by side, one step apart at most. */
static void join_lanes(const grid *in, int32_t *roots, lane of, lane to)
{
    uint64_t before = 0, bits = of.one[0] | of.two[0];
    for (int64_t word = 0; word < in->words; word++) {
        uint64_t next = word + 1 < in->words ? of.one[word + 1] | of.two[word + 1] : 0, met = to.one[word] | to.two[word];
        if (met) {
            uint64_t same = met & bits, beside = met & ~bits;
            join_bits(in, roots, &of, &to, word, same & ~(same << 1), 0);
            join_bits(in, roots, &of, &to, word, beside & (bits << 1 | before), -1);
            join_bits(in, roots, &of, &to, word, beside & (bits >> 1 | next << (WORD - 1)), 1);
        }
        before = bits >> (WORD - 1), bits = next;
    }
}

/* Write the runs of two planes from one on as bits; return the first run behind them, -1 if an end of a row or plane is
 * not empty. */
INLINE int64_t read_slab(const runs *of, int is_wide, const grid *in, int64_t plane, int64_t run, slab *to)
{
    int64_t row = -1, end = (plane + 2) * in->height * in->width;
    memset(to->bits, 0, (size_t)(4 * in->pairs * in->words) * sizeof *to->bits);
    for (uint64_t *bits = NULL; run < of->count && number_at(of->starts, run, is_wide) < end; run++) {
        int64_t start = number_at(of->starts, run, is_wide), stop = number_at(of->ends, run, is_wide);
        if (row < 0 || start >= (row + 1) * in->width) {
            row = start / in->width;
            bits = row_of(in, to, row / in->height, row % in->height);
        }
        if (row % in->height == in->height - 1 || stop - row * in->width >= in->width)
            return -1;
        sj_set_bits(bits, start - row * in->width, stop - row * in->width);
    }
    return run;
}

/* Number the runs of pairs of rows from one on; return the next number. */
static int32_t number_runs(const grid *in, slab *of, int32_t next)
{
    for (int64_t pair = 0; pair < in->pairs; pair++) {
        uint64_t carried = 0;
        for (int64_t word = 0; word < in->words; word++) {
            uint64_t bits = 0;
            for (int each = 0; each < 4; each++)
                bits |= row_of(in, of, each & 1, 2 * pair + each / 2)[word];
            int64_t at = pair * in->words + word;
            of->starts[at] = bits & ~(bits << 1 | carried), of->firsts[at] = next;
            next += (int32_t)sj_ones(of->starts[at]);
            carried = bits >> (WORD - 1);
        }
    }
    return next;
}

/* Join the runs of pairs of rows with those of the pairs before them, in these two planes and in the two before. */
static void join_slab(const grid *in, const slab *before, const slab *of, int32_t *roots)
{
    for (int64_t pair = 0; pair < in->pairs; pair++) {
        int64_t row = 2 * pair;
#define LANE(slab, number, plane, row, other_plane, other_row) \
        (lane){slab, number, row_of(in, slab, plane, row), row_of(in, slab, other_plane, other_row)}
        if (pair)
            join_lanes(in, roots, LANE(of, pair - 1, 0, row - 1, 1, row - 1), LANE(of, pair, 0, row, 1, row));
        join_lanes(in, roots, LANE(before, pair, 1, row, 1, row + 1), LANE(of, pair, 0, row, 0, row + 1));
        if (pair)
            join_lanes(in, roots, LANE(before, pair - 1, 1, row - 1, 1, row - 1), LANE(of, pair, 0, row, 0, row));
        if (pair + 1 < in->pairs)
            join_lanes(in, roots, LANE(before, pair + 1, 1, row + 2, 1, row + 2), LANE(of, pair, 0, row + 1, 0, row + 1));
#undef LANE
    }
}

/* Write the number of a run of a pair of rows that holds each run, and join those that meet; return how many there are, -1
 * if ends are not empty. */
INLINE int32_t join_pairs(const runs *of, int is_wide, const grid *in, slab *slabs, int32_t *roots, int32_t *names)
{
    int64_t plane_length = in->height * in->width;
    int32_t count = 0;
    memset(slabs[1].bits, 0, (size_t)(4 * in->pairs * in->words) * sizeof *slabs[1].bits);
    for (int64_t run = 0, plane = 0, turn = 0; run < of->count; plane += 2, turn ^= 1) {
        int64_t end = read_slab(of, is_wide, in, plane, run, slabs + turn);
        if (end < 0)
            return -1;
        int32_t next = number_runs(in, slabs + turn, count);
        for (; count < next; count++)
            roots[count] = count;
        for (int64_t row = 0; run < end; run++) {
            int64_t start = number_at(of->starts, run, is_wide) - plane * plane_length;
            if (start < row * in->width || start >= (row + 1) * in->width)
                row = start / in->width;
            names[run] = number_of(in, slabs + turn, row % in->height / 2, start - row * in->width);
        }
        join_slab(in, slabs + !turn, slabs + turn, roots);
    }
    return count;
}

/* Write the component of each run of a grid; return SJ_FULL if ends are not empty. */
static int join_grid(const runs *of, int is_wide, const grid *in, int32_t *names)
{
    int64_t words = in->pairs * in->words;
    uint64_t *bits = malloc((size_t)(10 * words) * sizeof *bits);
    int32_t *numbers = malloc((size_t)(2 * words + 2 * of->count) * sizeof *numbers), *roots = numbers + 2 * words;
    slab slabs[2] = {{bits, bits + 8 * words, numbers}, {bits + 4 * words, bits + 9 * words, numbers + words}};
    int32_t count = 0, components = 0;
    int status = bits && numbers ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE) {
        count = is_wide ? join_pairs(of, 1, in, slabs, roots, names) : join_pairs(of, 0, in, slabs, roots, names);
        status = count < 0 ? SJ_FULL : SJ_FINE;
        int32_t *of_roots = roots + of->count;
        for (int32_t root = 0; root < count; root++)
            of_roots[root] = -1;
        for (int64_t run = 0; status == SJ_FINE && run < of->count; run++) {
            int32_t root = find_root(roots, names[run]);
            of_roots[root] = of_roots[root] < 0 ? components++ : of_roots[root];
            names[run] = of_roots[root];
        }
    }
    free(bits);
    free(numbers);
    return status;
}

/* Write the component of each run, from 0 in the order of their first runs. Rows are pairs of a step to a row behind
 * and of the voxels by which runs reach beyond their ends there. */
SJ_EXPORT int sj_components(
    const void *starts, const void *ends, int32_t size, int64_t count, const int64_t *rows, int64_t row_count,
    int32_t *names)
{
    runs all = {starts, ends, NULL, count};
    if (!is_list(&all, size, 0) || !are_rows(rows, row_count, 1, MOST_ROWS) || !names)
        return SJ_BAD_CALL;
    if (!are_in_order(&all, size == 8))
        return SJ_BAD_DATA;
    grid in;
    if (find_grid(&all, size == 8, rows, row_count, &in)) {
        int status = join_grid(&all, size == 8, &in, names);
        if (status != SJ_FULL)
            return status;
    }
    for (int64_t run = 0; run < count; run++)
        names[run] = (int32_t)run;
    if (size == 8)
        join_all(&all, 1, rows, row_count, names);
    else
        join_all(&all, 0, rows, row_count, names);
    int32_t components = 0;
    for (int64_t run = 0; run < count; run++)
        names[run] = names[run] == run ? components++ : names[names[run]];
    return SJ_FINE;
}

INLINE int name_all(const runs *of, const runs *inner, int is_wide, int32_t *names)
{
    for (int64_t run = 0, around = 0; run < inner->count; run++) {
        int64_t start = number_at(inner->starts, run, is_wide);
        while (around < of->count && number_at(of->ends, around, is_wide) <= start)
            around++;
        if (around == of->count || number_at(of->starts, around, is_wide) > start
            || number_at(of->ends, around, is_wide) < number_at(inner->ends, run, is_wide))
            return SJ_BAD_DATA;
        names[run] = of->names[around];
    }
    return SJ_FINE;
}

/* Write the component of each run of a smaller mask, which lies in a run of a component. */
SJ_EXPORT int sj_name_within(
    const void *starts, const void *ends, const int32_t *names, int64_t count, const void *inner_starts,
    const void *inner_ends, int64_t inner_count, int32_t size, int32_t *inner_names)
{
    runs all = {starts, ends, names, count}, inner = {inner_starts, inner_ends, NULL, inner_count};
    if (!is_list(&all, size, 1) || !is_list(&inner, size, 0) || !inner_names)
        return SJ_BAD_CALL;
    return size == 8 ? name_all(&all, &inner, 1, inner_names) : name_all(&all, &inner, 0, inner_names);
}

/* Write the box of each component: from and to along z, y and x; of one without runs, the ends of the volume. Rows and
 * planes are as long as those of positions. */
SJ_EXPORT int sj_run_boxes(
    const void *starts, const void *ends, const int32_t *names, int64_t count, int32_t size, int64_t height,
    int64_t width, int64_t components, int64_t *boxes)
{
    runs all = {starts, ends, names, count};
    if (!is_list(&all, size, 1) || !sj_is_volume(1, height, width, SJ_MOST_PIXELS) || components < 0
        || components > INT32_MAX || !boxes)
        return SJ_BAD_CALL;
    if (!are_in_order(&all, size == 8) || !are_names(&all, components))
        return SJ_BAD_DATA;
    for (int64_t side = 0; side < 6 * components; side++)
        boxes[side] = side & 1 ? 0 : SJ_MOST_PIXELS;
    for (int64_t run = 0, row = 0, z = 0, y = 0; run < count; run++) {
        int64_t start = number_at(starts, run, size == 8), end = number_at(ends, run, size == 8);
        if (!run || start >= (row + 1) * width)
            row = start / width, z = row / height, y = row % height;
        int64_t *box = boxes + 6 * (int64_t)names[run], from = start - row * width, to = end - row * width;
        box[0] = z < box[0] ? z : box[0], box[1] = z + 1 > box[1] ? z + 1 : box[1];
        box[2] = y < box[2] ? y : box[2], box[3] = y + 1 > box[3] ? y + 1 : box[3];
        box[4] = from < box[4] ? from : box[4], box[5] = to > box[5] ? to : box[5];
    }
    return SJ_FINE;
}

/* ── of two masks ────────────────────────────────────────────────────────── */

/* Lower the first neighbour of each component to those that its runs meet in a row. */
INLINE void touch_row(const runs *of, const runs *neighbours, int is_wide, const int64_t *row, int64_t *firsts)
{
    for (int64_t run = 0, lowest = 0; run < of->count; run++) {
        int64_t *nearest = firsts + of->names[run];
        if (!*nearest)
            continue;
        int64_t start = number_at(of->starts, run, is_wide) + row[0] - row[1];
        int64_t end = number_at(of->ends, run, is_wide) + row[0] + row[1];
        while (lowest < neighbours->count && number_at(neighbours->ends, lowest, is_wide) <= start)
            lowest++;
        for (int64_t each = lowest; each < neighbours->count && number_at(neighbours->starts, each, is_wide) < end; each++)
            *nearest = neighbours->names[each] < *nearest ? neighbours->names[each] : *nearest;
    }
}

/* Lower the first neighbour of each component to the least one that its runs meet in some rows. Rows are pairs of a step
 * to a row and of the voxels by which runs reach beyond their ends there. */
SJ_EXPORT int sj_touch(
    const void *starts, const void *ends, const int32_t *names, int64_t count, const void *neighbour_starts,
    const void *neighbour_ends, const int32_t *neighbour_names, int64_t neighbour_count, int32_t size,
    const int64_t *rows, int64_t row_count, int64_t *firsts, int64_t components)
{
    runs all = {starts, ends, names, count};
    runs neighbours = {neighbour_starts, neighbour_ends, neighbour_names, neighbour_count};
    if (!is_list(&all, size, 1) || !is_list(&neighbours, size, 1) || !firsts
        || !are_rows(rows, row_count, -SJ_MOST_PIXELS, MOST_TOUCHED))
        return SJ_BAD_CALL;
    if (!are_in_order(&all, size == 8) || !are_in_order(&neighbours, size == 8) || !are_names(&all, components)
        || !are_names(&neighbours, INT32_MAX))
        return SJ_BAD_DATA;
    for (int64_t row = 0; row < row_count; row++)
        if (size == 8)
            touch_row(&all, &neighbours, 1, rows + 2 * row, firsts);
        else
            touch_row(&all, &neighbours, 0, rows + 2 * row, firsts);
    return SJ_FINE;
}

/* Write the voxels that pairs of components share, one pair after another; codes of pairs may come again. */
INLINE int64_t share_all(const runs *of, const runs *partners, int is_wide, int64_t width, int64_t *codes, int64_t *voxels)
{
    int64_t count = 0;
    for (int64_t run = 0, partner = 0; run < of->count && partner < partners->count;) {
        int64_t start = number_at(of->starts, run, is_wide), end = number_at(of->ends, run, is_wide);
        int64_t partner_start = number_at(partners->starts, partner, is_wide);
        int64_t partner_end = number_at(partners->ends, partner, is_wide);
        int64_t shared = (end < partner_end ? end : partner_end) - (start > partner_start ? start : partner_start);
        if (shared > 0) {
            int64_t code = of->names[run] * width + partners->names[partner];
            if (!count || codes[count - 1] != code)
                codes[count] = code, voxels[count++] = 0;
            voxels[count - 1] += shared;
        }
        run += end <= partner_end;
        partner += partner_end <= end;
    }
    return count;
}

/* Write the voxels that pairs of components share. The code of a pair is the component's name, times the width, and the
 * partner's, which is below the width; it may come several times. There is room for as many pairs as runs. */
SJ_EXPORT int sj_share_runs(
    const void *starts, const void *ends, const int32_t *names, int64_t count, const void *partner_starts,
    const void *partner_ends, const int32_t *partner_names, int64_t partner_count, int32_t size, int64_t width,
    int64_t *codes, int64_t *voxels, int64_t room, int64_t *pairs)
{
    runs all = {starts, ends, names, count}, partners = {partner_starts, partner_ends, partner_names, partner_count};
    if (!is_list(&all, size, 1) || !is_list(&partners, size, 1) || width < 1 || width > INT32_MAX || !codes || !voxels
        || !pairs || room < count + partner_count)
        return SJ_BAD_CALL;
    if (!are_in_order(&all, size == 8) || !are_in_order(&partners, size == 8) || !are_names(&all, INT32_MAX)
        || !are_names(&partners, width))
        return SJ_BAD_DATA;
    *pairs = size == 8 ? share_all(&all, &partners, 1, width, codes, voxels)
                       : share_all(&all, &partners, 0, width, codes, voxels);
    return SJ_FINE;
}

/* ── masks ───────────────────────────────────────────────────────────────── */

static inline void put_edge(void *edges, int32_t size, int64_t index, int64_t position)
{
    if (size == 8)
        ((int64_t *)edges)[index] = position;
    else
        ((int32_t *)edges)[index] = (int32_t)position;
}

/* Write where the runs of a mask of 0 and 1 start and end, from the position of its first voxel on, in 32 or 64 bits; a
 * voxel of background follows each row, and such a row each plane. All edges are counted, those in the room written. */
SJ_EXPORT int sj_find_runs(
    const uint8_t *mask, int64_t depth, int64_t height, int64_t width, int64_t first, void *edges, int32_t size,
    int64_t room, int64_t *count)
{
    if (!mask || !sj_is_volume(depth, height, width, SJ_MOST_PIXELS) || !edges || !count || (size != 4 && size != 8) || room < 0 || first < 0
        || first + depth * (height + 1) * (width + 1) > (size == 4 ? INT32_MAX : SJ_MOST_PIXELS))
        return SJ_BAD_CALL;
    *count = 0;
    for (int64_t z = 0; z < depth; z++)
        for (int64_t y = 0; y < height; y++) {
            const uint8_t *row = mask + (z * height + y) * width;
            int64_t start = first + (z * (height + 1) + y) * (width + 1);
            uint32_t before = 0;
            for (int64_t x = 0; x < width; x += 8) {
                uint64_t word = 0;
                if (width - x >= 8)
                    word = sj_load(row + x);
                else
                    memcpy(&word, row + x, (size_t)(width - x));
                if (!(word | before))
                    continue;
                if (word & ~ONES)
                    return SJ_BAD_DATA;
                /* A bit for each voxel, and for each that differs from the voxel before it. */
                uint32_t bits = (uint32_t)(word * 0x0102040810204080u >> 56);
                uint32_t changes = (bits ^ (bits << 1 | before)) & 0xff;
                for (before = bits >> 7; changes; changes &= changes - 1) {
                    if (*count < room)
                        put_edge(edges, size, *count, start + x + __builtin_ctz(changes));
                    ++*count;
                }
            }
            if (before) {
                if (*count < room)
                    put_edge(edges, size, *count, start + width);
                ++*count;
            }
        }
    return *count <= room ? SJ_FINE : SJ_FULL;
}

/* The label map of a volume, the number of each label's list, below 0 for none, and where the next run of each list
 * goes. */
typedef struct {
    const uint8_t *map;
    const int32_t *numbers;
    int64_t labels, *next, room;
    int32_t *starts, *ends;
} lists;

/* Return where the run of a label that begins in a row ends. */
static inline int64_t end_of_run(const uint8_t *row, int size, int64_t from, int64_t width)
{
    int64_t x = from + 1;
    uint64_t same;
    memcpy(&same, row + from * size, (size_t)size);
    same *= size == 1 ? 0x0101010101010101u : size == 2 ? 0x0001000100010001u : 0x0000000100000001u;
    while (x + 8 / size <= width && sj_load(row + x * size) == same)
        x += 8 / size;
    while (x < width && !memcmp(row + x * size, &same, (size_t)size))
        x++;
    return x;
}

/* List or count the runs of a row; the size of a label is a constant for the compiler. Return whether all fit. */
static inline int list_labels(lists *to, const uint8_t *row, int size, int64_t width, int64_t position)
{
    for (int64_t x = 0, end; x < width; x = end) {
        uint32_t label = 0;
        memcpy(&label, row + x * size, (size_t)size);
        end = end_of_run(row, size, x, width);
        if (label >= to->labels || to->numbers[label] < 0)
            continue;
        int64_t at = to->next[to->numbers[label]]++;
        if (!to->starts)
            continue;
        if (at < 0 || at >= to->room)
            return 0;
        to->starts[at] = (int32_t)(position + x), to->ends[at] = (int32_t)(position + end);
    }
    return 1;
}

/* Count the runs of bytes by label. Without a branch for each voxel, since noise changes at any of them. */
static void count_bytes(const uint8_t *row, int64_t width, int64_t *counts)
{
    int64_t x = 0;
    for (uint64_t before = 256; x < width;) {
        if (x + 8 <= width && sj_load(row + x) == before * 0x0101010101010101u && before < 256) {
            x += 8;
            continue;
        }
        for (int64_t end = x + 8 < width ? x + 8 : width; x < end; x++) {
            counts[row[x]] += row[x] != before;
            before = row[x];
        }
    }
}

/* List the runs of some labels, with positions as those of a mask: each label below an end has the number of its list, or
 * one below 0. Each list's runs go to the next place in the room, one after another; without room, they are counted. */
SJ_EXPORT int sj_label_runs(
    const void *map, int32_t size, int64_t depth, int64_t height, int64_t width, const int32_t *numbers, int64_t labels,
    int64_t *next, int64_t count, int32_t *starts, int32_t *ends, int64_t room)
{
    if (!map || (size != 1 && size != 2 && size != 4) || !sj_is_volume(depth, height + 1, width + 1, INT32_MAX) || height < 1
        || width < 1 || !numbers || labels < 0 || !next || count < 0 || !starts != !ends)
        return SJ_BAD_CALL;
    for (int64_t label = 0; label < labels; label++)
        if (numbers[label] >= count)
            return SJ_BAD_CALL;
    lists to = {map, numbers, labels, next, room, starts, ends};
    int64_t counts[256] = {0};
    int fits = 1, counts_bytes = size == 1 && !starts;
    for (int64_t row = 0; row < depth * height && counts_bytes; row++)
        count_bytes(to.map + row * width, width, counts);
    for (int64_t label = 0; label < labels && label < 256; label++)
        if (numbers[label] >= 0)
            next[numbers[label]] += counts[label];
    for (int64_t row = 0; row < depth * height && fits && !counts_bytes; row++) {
        const uint8_t *at = to.map + row * width * size;
        int64_t position = (row + row / height) * (width + 1);
        if (size == 1)
            fits = list_labels(&to, at, 1, width, position);
        else if (size == 2)
            fits = list_labels(&to, at, 2, width, position);
        else
            fits = list_labels(&to, at, 4, width, position);
    }
    return fits ? SJ_FINE : SJ_FULL;
}

/* Set the voxels of runs in a box: from and to along z, y and x. Rows and planes are as long as those of positions. */
SJ_EXPORT int sj_draw_runs(
    const void *starts, const void *ends, int32_t size, int64_t count, int64_t height, int64_t width, const int64_t *box,
    uint8_t *mask)
{
    runs all = {starts, ends, NULL, count};
    if (!is_list(&all, size, 0) || !box || !mask || !sj_is_volume(1, height, width, SJ_MOST_PIXELS))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++)
        if (box[2 * axis] < 0 || box[2 * axis + 1] < box[2 * axis] || box[2 * axis + 1] > SJ_MOST_SIDE)
            return SJ_BAD_CALL;
    if (!are_in_order(&all, size == 8))
        return SJ_BAD_DATA;
    for (int64_t run = 0; run < count; run++) {
        int64_t start = number_at(starts, run, size == 8), length = number_at(ends, run, size == 8) - start, row = start / width;
        int64_t z = row / height - box[0], y = row % height - box[2], x = start % width - box[4];
        if (z < 0 || z >= box[1] - box[0] || y < 0 || y >= box[3] - box[2] || x < 0
            || length > box[5] - box[4] - x)
            return SJ_BAD_DATA;
        memset(mask + (z * (box[3] - box[2]) + y) * (box[5] - box[4]) + x, 1, (size_t)length);
    }
    return SJ_FINE;
}
