"""Trainer: python3 train.py --stage a|b --until HH:MM[:SS] [--resume ckpt] ... LR schedule follows the wall clock."""
from paths import ROOT, SHARDS
import os, sys, time, math, json, glob, pickle, random, threading, queue, argparse, copy
import numpy as np, torch
import gen, tok as tokm, model as M, ops
torch.set_num_threads(2)
ap = argparse.ArgumentParser()
ap.add_argument('--stage', default='b'); ap.add_argument('--until'); ap.add_argument('--secs', type=float, default=0)
ap.add_argument('--resume', default=''); ap.add_argument('--save', default=ROOT + '/work/ck.pt'); ap.add_argument('--budget', type=float, default=16000)
ap.add_argument('--lr', type=float, default=1e-3); ap.add_argument('--muon', type=float, default=0.02); ap.add_argument('--lrend', type=float, default=0.05); ap.add_argument('--warm', type=float, default=60)
ap.add_argument('--aux', type=float, default=1.0); ap.add_argument('--guide', type=float, default=0.3); ap.add_argument('--pos', type=float, default=0.1); ap.add_argument('--noise', type=float, default=0.06); ap.add_argument('--pfrac', type=float, default=1.0)
ap.add_argument('--new', type=float, default=1.0); ap.add_argument('--live', type=int, default=6); ap.add_argument('--lrstart', type=float, default=1.0); ap.add_argument('--peek', action='store_true')
ap.add_argument('--log', default=ROOT + '/work/train.log'); ap.add_argument('--optreset', action='store_true'); ap.add_argument('--plain', action='store_true')
ap.add_argument('--vitcost', type=float, default=9.0); ap.add_argument('--stagefile', default=''); ap.add_argument('--vitlr', type=float, default=1.0)
a = ap.parse_args(); M.NOISE = a.noise
tk = tokm.Tok(ROOT + '/out/model'); LMON = a.stage == 'b'
torch.manual_seed(0); model = M.VL(gen.NCLS, gen.PSLOT, gen.CSLOT)
t_start = time.time()
open(ROOT + '/work/train.pid', 'w').write(str(os.getpid()))
if a.until:
    h = [int(v) for v in a.until.split(':')] + [0]; g = time.gmtime(); t_end = t_start + (h[0] - g.tm_hour) * 3600 + (h[1] - g.tm_min) * 60 + (h[2] - g.tm_sec)
else: t_end = t_start + a.secs
# ---- optimiser: Muon on the hidden matrices, AdamW on the rest
import opt as O
named = [(n, p) for n, p in model.named_parameters() if LMON or not (n.startswith('emb') or n.startswith('lb.') or n == 'norm')]
opt = O.Opt(named, a.muon > 0, a.vitlr)
st = dict(step=0, samples=0, chars=0, secs=0.0, hist=[])
if a.resume:
    ck = torch.load(a.resume); miss = model.load_state_dict(ck['model'], strict=False); print('resume', a.resume, miss, flush=True); st.update(ck['st'])
    if not a.optreset: opt.load(ck['opt'])
ema = {n: p.detach().clone() for n, p in model.named_parameters()}
if a.resume and 'ema' in ck and not a.optreset: ema.update({k: v for k, v in ck['ema'].items() if k in ema})
def save():
    torch.save(dict(model=model.state_dict(), ema=ema, opt=opt.state(), st=st), a.save + '.tmp'); os.replace(a.save + '.tmp', a.save)
# ---- data
live = []; SD = SHARDS
def refill():
    """Takes a.new new shards per 768-sample macro batch (so each sample is used about 3 / a.new times); keeps cycling when none is there."""
    refill.c += a.new
    while True:
        fs = sorted(glob.glob(SD + '/*.pkl'))
        for f in fs[:a.live if not live else int(refill.c)]:
            live.append([pickle.load(open(f, 'rb')), 0]); refill.c = max(0, refill.c - 1)
            if not a.peek: os.remove(f)
        refill.c = min(refill.c, 2)
        while len(live) > a.live: live.pop(0)
        if live: return
        time.sleep(.5)
refill.c = 0
def cost(s): c = s['gh'] * s['gw']; return c * a.vitcost + ((c + 16 + len(s['ids'])) * 5.2 if LMON else 0)
def batches():
    R = random.Random(time.time() if not a.peek else 1); n = 0
    while True:
        refill(); ss = [s for l in live for s in l[0]]
        for l in live: l[1] += 768 / max(768, len(ss))
        if len(ss) < 256: time.sleep(1)
        R.shuffle(ss); ss = ss[:768]
        ss.sort(key=lambda s: s['gh'] * s['gw'] + .6 * len(s['ids']) * LMON + R.uniform(-2, 2))
        bs = [[]]; c = 0
        for s in ss:
            if c + cost(s) > a.budget and bs[-1]: bs.append([]); c = 0
            bs[-1].append(s); c += cost(s)
        R.shuffle(bs)
        for b in bs:
            n += 1; yield b, M.collate(b, tk, LMON, a.pfrac, n)
Q = queue.Queue(3)
def feeder():
    torch.set_num_threads(1)
    for x in batches(): Q.put(x)
threading.Thread(target=feeder, daemon=True).start()
guide = {2: 'cur', 3: 'next', 4: 'next'}
lg = open(a.log, 'a'); acc = {}; tl = time.time(); tsave = time.time(); ns = 0; wait = 0; tcol = 0
while time.time() < t_end:
    t0 = time.time(); ss, B = Q.get(); wait += time.time() - t0
    pr = (time.time() - t_start) / (t_end - t_start); w = min(1, (time.time() - t_start + 1) / a.warm)
    f = w * (a.lrend + (a.lrstart - a.lrend) * .5 * (1 + math.cos(math.pi * min(1, pr))))
    out = model.losses(B, LMON, guide if LMON and a.guide > 0 else {}, a.aux > 0)
    loss = 0
    if a.aux > 0: loss = loss + a.aux * (out['auxp'] + out['auxc'])
    if LMON:
        loss = loss + out['lm']
        for k in out:
            if k[0] == 'g': loss = loss + a.guide * out[k]
            if k[:3] == 'pos': loss = loss + a.pos * out[k]
    opt.zero(); loss.backward(); gn = opt.step(a.lr * f, a.muon * f)
    if not math.isfinite(float(loss)): print('NONFINITE', flush=True)
    d = min(.998, (1 + st['step']) / (20 + st['step']))
    if st['step'] % 4 == 0: O.ema_update(ema, model, d ** 4)
    st['step'] += 1; st['samples'] += len(ss); st['chars'] += sum(len(s['text']) for s in ss)
    for k, v in out.items(): acc.setdefault(k, []).append(float(v))
    acc.setdefault('gn', []).append(gn); ns += len(ss)
    if time.time() - tl > 20:
        try:   # run-time overrides, e.g. {"guide": 0.1, "new": 2}
            for k, v in json.load(open(ROOT + '/work/ctl.json')).items():
                if getattr(a, k) != v: print('ctl', k, v, flush=True); setattr(a, k, v)
        except FileNotFoundError: pass
        except Exception as e: print('ctl error', e, flush=True)
        dt = time.time() - tl; st['secs'] += dt; n = len(acc['gn'])
        line = f"{time.strftime('%H:%M:%S', time.gmtime())} step {st['step']} {n / dt:.2f} st/s {ns / dt:.1f} smp/s wait {wait / dt:.2f} lr {a.lr * f:.2e} q {len(glob.glob(SD + '/*.pkl'))} reuse {np.mean([l[1] for l in live]) if live else 0:.1f} | " + ' '.join(f'{k} {np.mean(v):.3f}' for k, v in acc.items())
        print(line, flush=True); lg.write(line + '\n'); lg.flush()
        st['hist'].append((st['step'], {k: float(np.mean(v)) for k, v in acc.items()})); acc = {}; tl = time.time(); ns = 0; wait = 0
    if time.time() - tsave > 300: save(); tsave = time.time()
save(); print('end', st['step'], st['samples'], st['chars'], flush=True)
os._exit(0)
