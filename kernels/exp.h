/* exp.h - the one exponential and the one erf of the CPU kernels.
 *
 * exp: x clamped to [EXP_LO, EXP_HI]; n = rint(x log2 e) by adding EXP_MAGIC in one fma;
 * r = x - n ln 2 in two fmas; a polynomial of degree 6 in r by Horner; then two exact
 * multiplications by powers of two, n >> 1 and the rest, so that only a subnormal result
 * rounds again.  exp(0) is exactly 1, NaN stays NaN.  Error below 2 ulp.
 *
 * erf: t = |x|; up to ERF_SPLIT it is t + t P(t^2), above 1 - exp(Q(min(t, ERF_MAX))), and
 * then x's sign; both by Horner in fma.  Absolute error below 2e-7.
 *
 * Every instruction set does the same operations in the same order.  Coefficients: least
 * squares on Chebyshev nodes in double precision, each rounded once to f32. */
#ifndef GALLEY_KERNELS_EXP_H
#define GALLEY_KERNELS_EXP_H

#define EXP_LO     (-104.0f)
#define EXP_HI     89.0f
#define EXP_MAGIC  12582912.0f /* 1.5 * 2^23: the sum's low bits are the rounded integer */
#define EXP_LOG2E  1.442695f
#define EXP_LN2_HI 0.69314575f /* 15 significant bits: n times it is exact */
#define EXP_LN2_LO 1.4286068e-6f
#define EXP_C6     0.0013947606f
#define EXP_C5     0.008369873f
#define EXP_C4     0.041666247f
#define EXP_C3     0.16666509f
#define EXP_C2     0.5f

#define ERF_SPLIT 1.0f
#define ERF_MAX   4.0f /* erfc(4) is 1.5e-8: the result rounds to 1 */
#define ERF_P6    7.933494e-05f
#define ERF_P5    (-0.00080348464f)
#define ERF_P4    0.0051912186f
#define ERF_P3    (-0.0268554f)
#define ERF_P2    0.11283626f
#define ERF_P1    (-0.3761263f)
#define ERF_P0    0.12837917f
#define ERF_Q6    0.00018654639f
#define ERF_Q5    (-0.0029488958f)
#define ERF_Q4    0.021841515f
#define ERF_Q3    (-0.103111066f)
#define ERF_Q2    (-0.63814294f)
#define ERF_Q1    (-1.1270887f)
#define ERF_Q0    (-0.0003420217f)

#endif
