"""Differentiable building blocks on packed (unpadded) rows: fp32 residual stream, bf16 activations, fused C kernels (kern.c)."""
from paths import ROOT
import torch, ctypes, os, subprocess
BF = torch.bfloat16
_c = os.path.dirname(os.path.abspath(__file__)) + '/kern.c'; _so = ROOT + '/work/kern.so'
if not os.path.exists(_so) or os.path.getmtime(_so) < os.path.getmtime(_c):
    subprocess.check_call(['gcc', '-O3', '-march=native', '-ffast-math', '-fopenmp', '-shared', '-fPIC', _c, '-o', _so, '-lm'])
K = ctypes.CDLL(_so)
P = lambda t: ctypes.c_void_p(t.data_ptr())
L = ctypes.c_long; F = ctypes.c_float
def lin(x, w, b=None): return torch.nn.functional.linear(x, w, b)
class Gather(torch.autograd.Function):
    """Permutation of rows: out[j] = x[idx[j]], inv is the inverse permutation."""
    @staticmethod
    def forward(ctx, x, idx, inv): ctx.save_for_backward(inv); return x.index_select(0, idx)
    @staticmethod
    def backward(ctx, g): return g.index_select(0, ctx.saved_tensors[0]), None, None
class RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        N, C = x.shape; y = torch.empty(N, C, dtype=BF); rs = torch.empty(N)
        K.rms_fwd(P(x), P(w), P(y), P(rs), L(N), L(C)); ctx.save_for_backward(x, w, rs); return y
    @staticmethod
    def backward(ctx, g):
        x, w, rs = ctx.saved_tensors; N, C = x.shape; g = g.contiguous(); dx = torch.empty_like(x); dw = torch.empty_like(w)
        K.rms_bwd(P(x), P(w), P(rs), P(g), P(dx), P(dw), L(N), L(C)); return dx, dw
def rmsnorm(x, w): return RMS.apply(x.contiguous(), w)
class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gu):
        N, C = gu.shape; o = torch.empty(N, C // 2, dtype=BF); K.swiglu_fwd(P(gu), P(o), L(N), L(C // 2)); ctx.save_for_backward(gu); return o
    @staticmethod
    def backward(ctx, g):
        gu, = ctx.saved_tensors; d = torch.empty_like(gu); g = g.contiguous(); K.swiglu_bwd(P(gu), P(g), P(d), L(gu.shape[0]), L(gu.shape[1] // 2)); return d
swiglu = SwiGLU.apply
class AddBF(torch.autograd.Function):
    """fp32 residual + bf16 branch"""
    @staticmethod
    def forward(ctx, x, y): o = torch.empty_like(x); K.add_bf(P(x), P(y), P(o), L(x.numel())); return o
    @staticmethod
    def backward(ctx, g): return g, g.to(BF)
def add(x, y): return AddBF.apply(x, y.contiguous())
class Attn(torch.autograd.Function):
    """Packed qkv rows -> rope -> padded groups -> softmax attention -> packed rows. With guide=(rows, targets) also returns
    mean(-log P[row, target]) of those (flat batch*head*query) rows: the guided-attention loss."""
    @staticmethod
    def forward(ctx, qkv, cs, sn, g, H, Kh, causal, grow=None, gtgt=None):
        idxz, inv, lens, B, T = g; N = qkv.shape[0]; r = H // Kh
        Q = torch.empty(B * Kh, r * T, 64, dtype=BF); Kk = torch.empty(B * Kh, T, 64, dtype=BF); V = torch.empty(B * Kh, T, 64, dtype=BF)
        K.split_rope(P(qkv), P(cs), P(sn), P(idxz), P(Q), P(Kk), P(V), L(N), L(B), L(T), L(H), L(Kh), F(.125))
        S = torch.bmm(Q, Kk.transpose(1, 2)); K.softmax_fwd(P(S), P(lens), L(B), L(H), L(T), ctypes.c_int(causal))
        O = torch.bmm(S, V); out = torch.empty(N, H * 64, dtype=BF); K.pack_o(P(O), P(inv), P(out), L(N), L(T), L(H))
        ctx.save_for_backward(cs, sn, idxz, inv, lens, Q, Kk, V, S, O, grow, gtgt); ctx.a = (N, B, T, H, Kh, causal)
        gl = qkv.new_zeros((), dtype=torch.float32)
        if grow is not None: gl = -S.view(B * H * T, T)[grow, gtgt].float().clamp_min(1e-6).log().mean()
        return out, gl
    @staticmethod
    def backward(ctx, g, ggl):
        cs, sn, idxz, inv, lens, Q, Kk, V, S, O, grow, gtgt = ctx.saved_tensors; N, B, T, H, Kh, causal = ctx.a; g = g.contiguous()
        dO = torch.empty_like(O); K.unpack_o(P(g), P(idxz), P(dO), L(N), L(B), L(T), L(H))
        dV = torch.bmm(S.transpose(1, 2), dO); dP = torch.bmm(dO, V.transpose(1, 2))
        K.softmax_bwd(P(S), P(dP), P(dO), P(O), P(lens), L(B), L(H), L(T), ctypes.c_int(causal))
        if grow is not None: K.guide_bwd(P(S), P(dP), P(grow), P(gtgt), L(len(grow)), L(T), F(float(ggl) / len(grow)))
        dQ = torch.bmm(dP, Kk); dK = torch.bmm(dP.transpose(1, 2), Q); d = torch.empty(N, (H + 2 * Kh) * 64, dtype=BF)
        K.merge_rope(P(dQ), P(dK), P(dV), P(cs), P(sn), P(inv), P(d), L(N), L(T), L(H), L(Kh), F(.125))
        return d, None, None, None, None, None, None, None, None
class CE(torch.autograd.Function):
    """sum_n w[n] * CE(logits[n], t[n]); also returns argmax"""
    @staticmethod
    def forward(ctx, lg, t, w):
        N, C = lg.shape; lg = lg.detach().clone() if not lg.is_contiguous() else lg.detach(); loss = torch.empty(N); am = torch.empty(N, dtype=torch.int32)
        G = lg.clone(); K.ce(P(G), P(t), P(w), P(loss), P(am), L(N), L(C)); ctx.save_for_backward(G); ctx.mark_non_differentiable(am)
        return (loss * w).sum(), am
    @staticmethod
    def backward(ctx, g, _): G, = ctx.saved_tensors; return (G if float(g) == 1 else G * g.to(BF)), None, None
def adam(p, g, m, v, lr, b1, b2, c2, wd, sc): K.adam(P(p), P(g), P(m), P(v), L(p.numel()), F(lr), F(b1), F(b2), F(c2), F(wd), F(sc))
