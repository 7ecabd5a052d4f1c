/* fuzz_imatrix.c - claims: what opens has finite values, none negative; every refusal has a
 * sentence. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/format/imatrix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct imatrix *im;
    struct galley_err err = { 0 };
    if (imatrix_parse(&im, "fuzz", data, size, &err)) {
        if (!err.msg[0] || im) {
            abort();
        }
        return 0;
    }
    size_t n;
    const float *v = imatrix_lookup(im, "a", &n);
    for (size_t i = 0; i < n; i++) {
        if (!(v[i] >= 0) || !isfinite(v[i])) {
            abort();
        }
    }
    imatrix_close(im);
    return 0;
}
