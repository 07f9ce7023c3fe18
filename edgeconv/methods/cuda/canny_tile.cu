// canny, first pass for any picture: uint8 or uint16, of any size; a tile of it at a time in shared memory.
//
// A block finds the edge pixels of a tile in four steps, between which it waits: samples with what the border supplies,
// smoothed samples, size and sector of gradients, and thinning, where a warp's votes make the map (canny_map.cuh).
// canny_thin.cu is several times as fast, for uint8 pictures that are wide enough.
//
// Macros that decide what is computed (a flag is defined, or not):
//     SAMPLE      uint8 uint16    type of the picture
//     CHANNELS    1 3             grey, RGB
//     L2          flag            a magnitude is gx² + gy² instead of |gx| + |gy|
//     BLUR        0 3 5           size of the smoothing
#include "canny_map.cuh"

constexpr int TILE_WIDTH = WARP, TILE_HEIGHT = 16, WARPS = 8, THREADS = WARP * WARPS;
constexpr int RADIUS = BLUR / 2;
constexpr int HALO = 2;  // of smoothed samples: gradient and thinning look that far
constexpr int REACH = HALO + RADIUS;
constexpr int SAMPLE_ROWS = TILE_HEIGHT + 2 * REACH, SAMPLE_COLUMNS = TILE_WIDTH + 2 * REACH;
constexpr int SMOOTH_ROWS = TILE_HEIGHT + 2 * HALO, SMOOTH_COLUMNS = TILE_WIDTH + 2 * HALO;
constexpr int SIZE_ROWS = TILE_HEIGHT + 2, SIZE_COLUMNS = TILE_WIDTH + 2;
constexpr int SHARE = BLUR == 5 ? 256 : BLUR == 3 ? 16 : 1;
constexpr long long TANGENT_22 = 13573, TANGENT_UNIT = 1 << 15;  // tan 22.5°, as OpenCV has it

// Squares of 16-bit gradients need more than 32 bits; sizes are compared as whole numbers always.
typedef long long Size;
enum Sector { FLAT, STEEP, FALLING, RISING };

struct TileGeometry {
    int height, width, pictures;
    int tiles_across, tiles_down;
    int row_units;  // 16 bits each: the map from one row to the next
};

__device__ __forceinline__ int reflected(int position, int size) {  // border reflect101
    if (size == 1) return 0;
    const int period = 2 * (size - 1);
    const int folded = ((position % period) + period) % period;
    return folded < size ? folded : period - folded;
}
// Of the smoothing along one direction.
__device__ __forceinline__ constexpr unsigned weight(int step) {
    if (BLUR == 5) return step == 0 ? 6 : step == 1 || step == -1 ? 4 : 1;
    return BLUR == 3 && step == 0 ? 2 : 1;
}
__device__ __forceinline__ int clamped(int position, int size) { return min(max(position, 0), size - 1); }

extern "C" __global__ void __launch_bounds__(THREADS)
    canny_tile(const SAMPLE *__restrict__ image, uint16 *__restrict__ map, const __grid_constant__ TileGeometry size,
               long long low, long long high) {
    __shared__ SAMPLE samples[SAMPLE_ROWS][SAMPLE_COLUMNS][CHANNELS];
    __shared__ SAMPLE smooth[SMOOTH_ROWS][SMOOTH_COLUMNS][CHANNELS];
    __shared__ Size sizes[SIZE_ROWS][SIZE_COLUMNS];
    __shared__ unsigned char sectors[SIZE_ROWS][SIZE_COLUMNS];
    unsigned index = blockIdx.x;
    const int first_x = index % size.tiles_across * TILE_WIDTH;
    index /= size.tiles_across;
    const int first_y = index % size.tiles_down * TILE_HEIGHT;
    const int picture = index / size.tiles_down;
    const long long row_samples = static_cast<long long>(size.width) * CHANNELS;
    image += picture * size.height * row_samples;
    const int thread = threadIdx.x;

    for (int i = thread; i < SAMPLE_ROWS * SAMPLE_COLUMNS; i += THREADS) {
        const int row = i / SAMPLE_COLUMNS, column = i % SAMPLE_COLUMNS;
        const int y = reflected(first_y - REACH + row, size.height), x = reflected(first_x - REACH + column, size.width);
        const SAMPLE *const from = image + y * row_samples + static_cast<long long>(x) * CHANNELS;
        for (int c = 0; c < CHANNELS; ++c) samples[row][column][c] = from[c];
    }
    __syncthreads();

    // Beyond its edges the smoothed picture goes on as it is at them.
    for (int i = thread; i < SMOOTH_ROWS * SMOOTH_COLUMNS; i += THREADS) {
        const int row = i / SMOOTH_COLUMNS, column = i % SMOOTH_COLUMNS;
        const int y = clamped(first_y - HALO + row, size.height) - first_y + REACH;
        const int x = clamped(first_x - HALO + column, size.width) - first_x + REACH;
        for (int c = 0; c < CHANNELS; ++c) {
            unsigned sum = SHARE / 2;
            for (int u = -RADIUS; u <= RADIUS; ++u)
                for (int v = -RADIUS; v <= RADIUS; ++v)
                    sum += weight(u) * weight(v) * samples[y + u][x + v][c];
            smooth[row][column][c] = static_cast<SAMPLE>(sum / SHARE);
        }
    }
    __syncthreads();

    for (int i = thread; i < SIZE_ROWS * SIZE_COLUMNS; i += THREADS) {
        const int row = i / SIZE_COLUMNS, column = i % SIZE_COLUMNS;
        const int y = first_y - 1 + row, x = first_x - 1 + column;
        Size largest = -1;
        int gx = 0, gy = 0;
        for (int c = 0; c < CHANNELS; ++c) {
            const auto at = [&](int v, int u) { return static_cast<int>(smooth[row + v][column + u][c]); };
            const int its_x = at(0, 2) - at(0, 0) + 2 * (at(1, 2) - at(1, 0)) + at(2, 2) - at(2, 0);
            const int its_y = at(2, 0) - at(0, 0) + 2 * (at(2, 1) - at(0, 1)) + at(2, 2) - at(0, 2);
#ifdef L2
            const Size its = static_cast<Size>(its_x) * its_x + static_cast<Size>(its_y) * its_y;
#else
            const Size its = abs(its_x) + abs(its_y);
#endif
            if (its > largest) largest = its, gx = its_x, gy = its_y;
        }
        const bool outside = y < 0 || y >= size.height || x < 0 || x >= size.width;
        sizes[row][column] = outside ? 0 : largest;
        const long long across = abs(gx), down = abs(gy) * TANGENT_UNIT, boundary = across * TANGENT_22;
        sectors[row][column] = down < boundary                               ? FLAT
                               : down > boundary + 2 * TANGENT_UNIT * across ? STEEP
                               : (gx ^ gy) < 0                               ? FALLING
                                                                             : RISING;
    }
    __syncthreads();

    for (int row = thread / WARP; row < TILE_HEIGHT; row += WARPS) {
        const int y = first_y + row, lane = thread % WARP, x = first_x + lane;
        const auto at = [&](int v, int u) { return sizes[row + 1 + v][lane + 1 + u]; };
        const Size own = at(0, 0);
        const int sector = sectors[row + 1][lane + 1];
        const bool kept = sector == FLAT      ? own > at(0, -1) && own >= at(0, 1)
                          : sector == STEEP   ? own > at(-1, 0) && own >= at(1, 0)
                          : sector == FALLING ? own > at(-1, 1) && own > at(1, -1)
                                              : own > at(-1, -1) && own > at(1, 1);
        const bool edge = kept && own > low && x < size.width;
        const unsigned edges = __ballot_sync(EVERY_LANE, edge), strong = __ballot_sync(EVERY_LANE, edge && own > high);
        const int unit = first_x / UNIT_PIXELS + lane;
        if (lane >= TILE_WIDTH / UNIT_PIXELS || y >= size.height || unit >= size.row_units) continue;
        const unsigned eight = edges >> lane * UNIT_PIXELS, eight_strong = strong >> lane * UNIT_PIXELS;
        const unsigned even = (eight & 0x55u) | (eight_strong & 0x55u) << 1;
        const unsigned odd = (eight & 0xAAu) >> 1 | (eight_strong & 0xAAu);
        map[(static_cast<long long>(picture) * size.height + y) * size.row_units + unit] = static_cast<uint16>(even | odd << 8);
    }
}
