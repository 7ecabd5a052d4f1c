#!/usr/bin/env python3
"""Reference values for vision/ and src/model from Hugging Face transformers.

    python3 tools/reference/qwen2_5_vl.py tests/golden/hf        (docs/reference.md)

Builds small random Qwen2-VL and Qwen2.5-VL models, runs them in float32 on generated images and
prompts with the slow (PIL) image processor, and writes one directory per case: config.json,
preprocessor_config.json, model.safetensors, image0.png ..., and as .npy: ids, grids,
pixel_values, embeds, positions [3][n], logits [n][vocab], greedy (the next tokens) and margin
(top-1 minus top-2 logit of each).  Beside them: resize/ (Pillow), smart_resize.txt and
rope_index.txt.  Everything is seeded; another version of transformers may differ in the last
bits, never more.
"""
import json
import os
import shutil
import sys

import numpy as np
import PIL
import torch
from PIL import Image, ImageDraw
from safetensors.torch import save_file
from transformers import (Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2VLConfig,
                          Qwen2VLForConditionalGeneration)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import (Qwen2VLImageProcessorPil,
                                                                        smart_resize)

VOCAB = 96
BOS, EOS, VISION_START, VISION_END, VISION_PAD, IMAGE_PAD, VIDEO_PAD = range(VOCAB - 7, VOCAB)
N_GREEDY = 12

# Text widths: hidden, heads, kv heads, layers, feed-forward.  Vision: width, heads, depth,
# feed-forward (or ratio), patch, merge, window, full-attention blocks.  prompt: numbers are
# runs of random text tokens, tuples are images (width, height).
CASES = [
    dict(name='q25_gqa', family='2.5', seed=1, dtype=torch.bfloat16, tied=True, layout='flat',
         text=(48, 6, 2, 3, 80), sections=(1, 1, 2), theta=1e4,
         vision=(48, 3, 3, 64, 8, 2, 64, [1]), prompt=[3, (150, 97), 5, (64, 64), 9],
         pixels=(16 * 16 * 4, 16 * 16 * 48)),
    dict(name='q25_mha', family='2.5', seed=2, dtype=torch.float32, tied=False, layout='nested',
         text=(40, 2, 2, 2, 56), sections=(2, 4, 4), theta=1e6,
         vision=(32, 4, 4, 48, 6, 2, 36, [0, 3]), prompt=[2, (33, 131), 1, (90, 40), (50, 50), 6],
         pixels=(12 * 12 * 4, 12 * 12 * 40)),
    dict(name='q25_official', family='2.5', seed=3, dtype=torch.bfloat16, tied=True,
         layout='nested', text=(64, 2, 1, 2, 96), sections=(4, 6, 6), theta=1e6,
         vision=(32, 2, 2, 40, 14, 2, 112, [1]), prompt=[4, (300, 180), 7],
         pixels=(56 * 56, 28 * 28 * 20)),
    dict(name='q25_text', family='2.5', seed=4, dtype=torch.float16, tied=True, layout='flat',
         text=(32, 4, 1, 2, 48), sections=(1, 1, 2), theta=100.0,
         vision=(16, 1, 1, 24, 4, 2, 16, [0]), prompt=[41], pixels=(256, 4096)),
    dict(name='q2_full', family='2', seed=5, dtype=torch.bfloat16, tied=False, layout='flat',
         text=(48, 3, 1, 2, 64), sections=(2, 3, 3), theta=1e6,
         vision=(32, 2, 3, 3, 8, 2, 0, []), prompt=[5, (120, 70), 3, (40, 90), 8],
         pixels=(16 * 16 * 4, 16 * 16 * 40)),
]


def picture(rng, width, height):
    """Edges, text-like strokes and noise: everything a resampler may get wrong."""
    a = rng.integers(0, 256, (max(1, height // 7), max(1, width // 7), 3), dtype=np.uint8)
    im = Image.fromarray(a).resize((width, height), Image.NEAREST)
    d = ImageDraw.Draw(im)
    for _ in range(12):
        x, y = rng.integers(0, width), rng.integers(0, height)
        d.line((x, y, x + rng.integers(-40, 40), y + rng.integers(-40, 40)),
               fill=tuple(int(v) for v in rng.integers(0, 256, 3)), width=int(rng.integers(1, 4)))
    return im


def model_of(case):
    hidden, heads, kv, layers, ffn = case['text']
    vw, vh, vd, vf, patch, merge, window, full = case['vision']
    text = dict(vocab_size=VOCAB, hidden_size=hidden, intermediate_size=ffn,
                num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
                max_position_embeddings=4096, rms_norm_eps=1e-6, bos_token_id=BOS,
                eos_token_id=EOS, tie_word_embeddings=case['tied'],
                rope_parameters=dict(rope_type='default', rope_theta=case['theta'],
                                     mrope_section=list(case['sections'])))
    ids = dict(image_token_id=IMAGE_PAD, video_token_id=VIDEO_PAD,
               vision_start_token_id=VISION_START, vision_end_token_id=VISION_END,
               tie_word_embeddings=case['tied'])
    if case['family'] == '2.5':
        vision = dict(hidden_size=vw, num_heads=vh, depth=vd, intermediate_size=vf,
                      patch_size=patch, spatial_merge_size=merge, temporal_patch_size=2,
                      window_size=window, fullatt_block_indexes=full, out_hidden_size=hidden)
        cfg = Qwen2_5_VLConfig(text_config=text, vision_config=vision, **ids)
        cls = Qwen2_5_VLForConditionalGeneration
    else:
        vision = dict(embed_dim=vw, hidden_size=hidden, num_heads=vh, depth=vd, mlp_ratio=vf,
                      patch_size=patch, spatial_merge_size=merge, temporal_patch_size=2)
        cfg = Qwen2VLConfig(text_config=text, vision_config=vision, **ids)
        cls = Qwen2VLForConditionalGeneration
    cfg._attn_implementation = 'eager'
    model = cls(cfg).float().eval()
    g = torch.Generator().manual_seed(case['seed'])
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn(p.shape, generator=g)
            if p.dim() == 1:
                r = 0.2 * r + (0.0 if name.endswith('bias') else 1.0)
            elif 'embed_tokens' not in name:
                r *= 1.3 / (p[0].numel() ** 0.5)
            p.copy_(r.to(case['dtype']).float())  # what the file will say, exactly
    inv = model.model.language_model.rotary_emb.inv_freq
    assert abs(float(inv[1]) - case['theta'] ** (-2.0 / (hidden // heads))) < 1e-6
    return model, cfg


def save_config(case, cfg, path):
    c = json.loads(cfg.to_json_string(use_diff=False))
    saved = json.loads(cfg.to_json_string())
    t, v = c['text_config'], c['vision_config']
    if case['layout'] == 'nested':
        keep = saved  # as save_pretrained writes it
    else:  # the layout of the checkpoints released in 2024 and 2025
        names = ('vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads '
                 'num_key_value_heads max_position_embeddings rms_norm_eps hidden_act bos_token_id '
                 'eos_token_id use_sliding_window').split()
        keep = {k: t[k] for k in names if k in t}
        keep.update(rope_theta=case['theta'],
                    rope_scaling=dict(type='mrope', mrope_section=list(case['sections'])),
                    tie_word_embeddings=case['tied'], image_token_id=IMAGE_PAD,
                    video_token_id=VIDEO_PAD, vision_start_token_id=VISION_START,
                    vision_end_token_id=VISION_END)
        names = ('depth embed_dim hidden_size mlp_ratio num_heads intermediate_size hidden_act '
                 'in_channels patch_size spatial_merge_size temporal_patch_size window_size '
                 'fullatt_block_indexes out_hidden_size').split()
        keep['vision_config'] = {k: v[k] for k in names if k in v}
    two5 = case['family'] == '2.5'
    keep['model_type'] = 'qwen2_5_vl' if two5 else 'qwen2_vl'
    keep['architectures'] = ['Qwen2_5_VLForConditionalGeneration' if two5 else
                             'Qwen2VLForConditionalGeneration']
    keep['torch_dtype'] = str(case['dtype']).split('.')[1]
    with open(os.path.join(path, 'config.json'), 'w') as f:
        json.dump(keep, f, indent=1, sort_keys=True)


def save_weights(case, model, path):
    """Newer nesting as save_pretrained's module tree has it, or the classic names."""
    out = {}
    for name, p in model.named_parameters():
        if case['layout'] == 'flat':
            name = name.replace('model.language_model.', 'model.').replace('model.visual.',
                                                                           'visual.')
        out[name] = p.detach().to(case['dtype']).contiguous()
    if case['tied']:
        out.pop('lm_head.weight', None)
    save_file(out, os.path.join(path, 'model.safetensors'), metadata={'format': 'pt'})


def prompt_of(case, rng, proc, path):
    """Token ids, token types, pixel values, grids; writes the pictures."""
    merge = case['vision'][5]
    ids, values, grids = [], [], []
    for part in case['prompt']:
        if isinstance(part, int):
            ids += [int(v) for v in rng.integers(0, BOS, part)]
            continue
        im = picture(rng, *part)
        im.save(os.path.join(path, 'image%d.png' % len(grids)))
        out = proc(images=[im], return_tensors='np')
        grid = [int(v) for v in out['image_grid_thw'][0]]
        values.append(np.asarray(out['pixel_values'], np.float32))
        grids.append(grid)
        ids += [VISION_START] + [IMAGE_PAD] * (grid[1] * grid[2] // merge**2) + [VISION_END]
    return ids, values, grids


def run(model, ids, values, grids):
    t = torch.tensor([ids])
    kw = {}
    if grids:
        kw = dict(pixel_values=torch.from_numpy(np.concatenate(values)),
                  image_grid_thw=torch.tensor(grids))
    return model(input_ids=t, attention_mask=torch.ones_like(t), use_cache=False,
                 mm_token_type_ids=(t == IMAGE_PAD).int(), **kw).logits[0]


def make_case(case, root):
    path = os.path.join(root, case['name'])
    os.makedirs(path)
    rng = np.random.default_rng(case['seed'])
    model, cfg = model_of(case)
    save_config(case, cfg, path)
    save_weights(case, model, path)
    patch, merge = case['vision'][4:6]
    lo, hi = case['pixels']
    proc = Qwen2VLImageProcessorPil(size=dict(shortest_edge=lo, longest_edge=hi),
                                    patch_size=patch, merge_size=merge, temporal_patch_size=2)
    with open(os.path.join(path, 'preprocessor_config.json'), 'w') as f:
        json.dump(dict(min_pixels=lo, max_pixels=hi, patch_size=patch, merge_size=merge,
                       temporal_patch_size=2, image_mean=list(proc.image_mean),
                       image_std=list(proc.image_std), rescale_factor=proc.rescale_factor,
                       do_resize=True, do_rescale=True, do_normalize=True, do_convert_rgb=True,
                       resample=3, image_processor_type='Qwen2VLImageProcessor'), f, indent=1)
    ids, values, grids = prompt_of(case, rng, proc, path)

    def save(name, a, dtype):
        np.save(os.path.join(path, name + '.npy'), np.ascontiguousarray(np.asarray(a), dtype))

    with torch.no_grad():
        t = torch.tensor([ids])
        pos = torch.arange(len(ids)).expand(3, -1)
        if grids:
            pv, gr = torch.from_numpy(np.concatenate(values)), torch.tensor(grids)
            pos = model.model.get_rope_index(t, mm_token_type_ids=(t == IMAGE_PAD).int(),
                                             image_grid_thw=gr,
                                             attention_mask=torch.ones_like(t))[0][:, 0]
            embeds = model.model.get_image_features(pv, gr).pooler_output
            save('embeds', torch.cat(list(embeds)), np.float32)
            save('pixel_values', pv, np.float32)
            save('grids', grids, np.int32)
        save('positions', pos, np.int32)
        save('ids', ids, np.int32)
        save('logits', run(model, ids, values, grids), np.float32)
        more, margin = [], []
        for _ in range(N_GREEDY):
            last = run(model, ids + more, values, grids)[-1]
            top = last.topk(2)
            more.append(int(top.indices[0]))
            margin.append(float(top.values[0] - top.values[1]))
            if more[-1] == IMAGE_PAD or more[-1] == VISION_START:
                break  # a random model may begin an image: the reference cannot go on
        save('greedy', more, np.int32)
        save('margin', margin, np.float32)
    print(case['name'], 'tokens', len(ids), 'grids', grids, 'greedy', more,
          'least margin %.4f' % min(margin))


def make_resize(root):
    """Pillow's own bicubic at awkward ratios: name of a case is WxH-to-WxH."""
    path = os.path.join(root, 'resize')
    os.makedirs(path)
    rng = np.random.default_rng(9)
    for w, h, w2, h2 in [(97, 61, 56, 28), (40, 30, 112, 84), (200, 13, 84, 28), (31, 120, 31, 56),
                         (90, 33, 28, 33), (1, 1, 28, 28), (5, 90, 28, 448), (150, 150, 149, 151),
                         (180, 20, 3, 2), (90, 40, 96, 36)]:
        im = picture(rng, w, h)
        name = '%dx%d-to-%dx%d' % (w, h, w2, h2)
        im.save(os.path.join(path, name + '.in.png'))
        im.resize((w2, h2), Image.BICUBIC).save(os.path.join(path, name + '.out.png'))


def make_smart_resize(root):
    rng = np.random.default_rng(10)
    rows = []
    limits = [(3136, 200704), (3136, 12845056), (56 * 56, 28 * 28 * 1280), (100352, 602112)]
    # halves of 28 in both parities: Python rounds them to even
    sizes = [(28 * a + 14, 28 * b + 14) for a in (1, 2, 3, 4) for b in (1, 2, 9, 10)]
    sizes += [(15, 15), (15, 2999), (28, 28), (20, 100), (27, 56), (1654, 2339), (100, 20000)]
    sizes += [tuple(int(v) for v in np.exp(rng.uniform(np.log(15), np.log(9000), 2)))
              for _ in range(300)]
    for w, h in sizes:
        if max(w, h) / min(w, h) > 200:
            continue
        lo, hi = limits[int(rng.integers(len(limits)))]
        h2, w2 = smart_resize(h, w, 28, lo, hi)
        rows.append('%d %d %d %d %d %d' % (w, h, lo, hi, w2, h2))
    with open(os.path.join(root, 'smart_resize.txt'), 'w') as f:
        f.write('# width height min_pixels max_pixels -> width height\n' + '\n'.join(rows) + '\n')


def make_rope_index(root, model):
    """Prompts as parts: text runs and images (rows x cols merged cells); positions of all."""
    rng = np.random.default_rng(11)
    lines = ['# parts (tN: N text tokens, iRxC: image) | t ... | h ... | w ... | next']
    for _ in range(24):
        parts, ids, grids = [], [], []
        for _ in range(int(rng.integers(1, 6))):
            if rng.random() < 0.5:
                n = int(rng.integers(1, 6))
                parts.append('t%d' % n)
                ids += [1] * n
            else:
                r, c = (int(v) for v in rng.integers(1, 6, 2))
                parts.append('i%dx%d' % (r, c))
                ids += [VISION_START] + [IMAGE_PAD] * (r * c) + [VISION_END]
                grids.append([1, 2 * r, 2 * c])
        t = torch.tensor([ids])
        pos = torch.arange(len(ids)).expand(3, 1, -1)
        if grids:
            pos, _ = model.model.get_rope_index(t, mm_token_type_ids=(t == IMAGE_PAD).int(),
                                                image_grid_thw=torch.tensor(grids),
                                                attention_mask=torch.ones_like(t))
        axes = [' '.join(str(int(v)) for v in pos[a, 0]) for a in range(3)]
        lines.append(' '.join(parts) + ' | ' + ' | '.join(axes) + ' | %d' % (int(pos.max()) + 1))
    with open(os.path.join(root, 'rope_index.txt'), 'w') as f:
        f.write('\n'.join(lines) + '\n')


def main():
    root = sys.argv[1]
    # 13.0 runs the vertical pass first when the height shrinks much more than the width, which
    # moves pixels by up to 18 levels; the models were trained on the horizontal pass first.
    assert int(PIL.__version__.split('.')[0]) < 13, 'needs Pillow < 13'
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    torch.set_num_threads(1)
    for case in CASES:
        make_case(case, root)
    make_resize(root)
    make_smart_resize(root)
    make_rope_index(root, model_of(CASES[0])[0])


if __name__ == '__main__':
    main()
