/* Two look-ups per word and nothing else: what an ideal sampler with a table of 256 entries does. */
#include <stdint.h>

void looked_up(const uint64_t *words, int64_t count, const int64_t *table, int64_t *out) {
    for (int64_t i = 0; i < count; i++) {
        out[2 * i] = table[words[i] & 255];
        out[2 * i + 1] = table[words[i] >> 56];
    }
}
