// Lanes of CUDA `sliding`, and the largest of eight directions in them; included after picture.cuh and sums.cuh.
//
//     a lane         one sample, in the type of sums
//     under PAIRS    two bytes of a row, two bytes apart, as halves in a word. A byte is the bits of its multiple of
//                    2^-24, and so is every whole number up to 2,048: nothing is converted on either way
#ifdef PAIRS
typedef unsigned Lane;
__device__ __forceinline__ Lane add(Lane a, Lane b) { return add_halves(a, b); }
__device__ __forceinline__ Lane subtract(Lane a, Lane b) { return subtract_halves(a, b); }
__device__ __forceinline__ Lane multiply(Lane a, Lane b) { return multiply_add_halves(a, b, 0); }
__device__ __forceinline__ Lane multiply_add(Lane a, Lane b, Lane c) { return multiply_add_halves(a, b, c); }
__device__ __forceinline__ Lane larger_size(Lane a, Lane b) { return larger_halves(a, b); }
__device__ __forceinline__ Lane larger_lane(Lane a, Lane b) { return larger_halves(a, b); }  // none is below 0
#else
typedef Sum Lane;
__device__ __forceinline__ Lane add(Lane a, Lane b) { return plain_add(a, b); }
__device__ __forceinline__ Lane subtract(Lane a, Lane b) { return plain_subtract(a, b); }
__device__ __forceinline__ Lane multiply(Lane a, Lane b) { return plain_multiply(a, b); }
__device__ __forceinline__ Lane larger_size(Lane a, Lane b) {
    return is_float(static_cast<const INPUT *>(nullptr)) ? larger_size_or_nan(a, b) : fmax(fabs(a), fabs(b));
}
__device__ __forceinline__ Lane larger_lane(Lane a, Lane b) { return larger_number(a, b); }
#endif

constexpr int RING = 8, OPPOSITE = RING / 2;  // samples around the centre, clockwise from the top left

// See core/lowering.py: near · (the largest sum of three) + far · (the sum of the ring).
__device__ __forceinline__ Lane ring_of_three(const Lane (&ring)[RING], Lane near, Lane far) {
    Lane largest = Lane(), pair[OPPOSITE];
#pragma unroll
    for (int i = 0; i < OPPOSITE; ++i) {
        const int first = 2 * i;
        pair[i] = add(ring[first], ring[first + 1]);
        const Lane three = add(pair[i], larger_lane(ring[(first + RING - 1) % RING], ring[(first + 2) % RING]));
        largest = i == 0 ? three : larger_lane(largest, three);
    }
    return multiply_add(far, add(add(pair[0], pair[1]), add(pair[2], pair[3])), multiply(near, largest));
}

// The same without `near`, of the differences of opposite samples.
__device__ __forceinline__ Lane largest_of_differences(const Lane (&apart)[OPPOSITE]) {
    Lane two[OPPOSITE];
#pragma unroll
    for (int i = 0; i < OPPOSITE; ++i)
        two[i] = i + 1 < OPPOSITE ? add(apart[i], apart[i + 1]) : subtract(apart[i], apart[0]);
    Lane largest = add(two[0], two[1]);
#pragma unroll
    for (int i = 1; i < OPPOSITE; ++i)
        largest = larger_size(largest, i + 1 < OPPOSITE ? add(two[i], two[i + 1]) : subtract(two[i], two[0]));
    return largest;
}
