"""Checks an exported model directory: config against tensors, finite weights, and a greedy answer for one rendered region.
python3 check.py [model dir]"""
from paths import ROOT
import json, os, random, sys, numpy as np, torch
import export, gen, ref, tok as tokm, eval as ev
d = sys.argv[1] if len(sys.argv) > 1 else ROOT + '/out/model'
cf = json.load(open(d + '/config.json')); sd = export.st_read(d + '/model.safetensors'); tk = tokm.Tok(d); v = cf['vision_config']
H = cf['hidden_size']; hd = H // cf['num_attention_heads']
want = {'model.embed_tokens.weight': [cf['vocab_size'], H], 'model.norm.weight': [H], 'visual.patch_embed.proj.weight': [v['hidden_size'], 3, 2, 14, 14], 'visual.merger.mlp.2.weight': [H, 4 * v['hidden_size']]}
for i in range(cf['num_hidden_layers']):
    p = f'model.layers.{i}.'
    want.update({p + 'self_attn.q_proj.weight': [H, H], p + 'self_attn.k_proj.weight': [hd * cf['num_key_value_heads'], H], p + 'mlp.gate_proj.weight': [cf['intermediate_size'], H], p + 'mlp.down_proj.weight': [H, cf['intermediate_size']]})
for i in range(v['depth']): want[f'visual.blocks.{i}.attn.qkv.weight'] = [3 * v['hidden_size'], v['hidden_size']]
for k, shape in want.items(): assert list(sd[k].shape) == shape, (k, sd[k].shape, shape)
for k, t in sd.items(): assert torch.isfinite(t).all(), k
assert max(tk.special.values()) < cf['vocab_size'] and tk.img == cf['image_token_id']
R = random.Random(1); s = gen.sample(R, np.random.default_rng(1), gen.Text(R), tk, dict(gen.DEF), 0, 'par')
with torch.no_grad():
    pv, g = ref.patchify(ev.pic(s)); o = ref.greedy(sd, cf, pv, g, tk, 24)
print('check:', len(sd), 'tensors,', sum(t.numel() for t in sd.values()), 'parameters, grid', g, 'wanted', repr(s['text'][:60]), 'read', repr(tk.decode(o)[:60]))
