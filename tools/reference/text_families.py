#!/usr/bin/env python3
"""Reference values for the text families of src/model from Hugging Face transformers.

    python3 tools/reference/text_families.py tests/golden/hf        (docs/reference.md)

Builds small random models of each family (odd head sizes, three query heads per key head, windows
and rotary contexts shorter than the prompt), runs them in float32, and writes one directory per
case: config.json in the layout its checkpoints have, model.safetensors (llama_pairs: with the rows
of q and k in GGUF's order), and as .npy: ids, logits
[n][vocab], greedy (the next tokens) and margin (top-1 minus top-2 logit of each).  Everything is
seeded; another version of transformers may differ in the last bits, never more.
"""
import functools
import json
import os
import shutil
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import (Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM,
                          Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)
from transformers.models.gemma3 import modeling_gemma3

VOCAB = 96
BOS, EOS = VOCAB - 2, VOCAB - 1
N_PROMPT, N_GREEDY = 40, 12

LLAMA3 = dict(rope_type='llama3', rope_theta=5e3, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32

# sizes: hidden, heads, kv heads, head size, layers, feed-forward.
CASES = [
    dict(name='qwen2', cls=(Qwen2Config, Qwen2ForCausalLM), seed=11, dtype=BF16, layout='flat',
         sizes=(72, 3, 1, 24, 2, 56), tied=True, rope=dict(rope_type='default', rope_theta=1e4)),
    dict(name='qwen2_window', cls=(Qwen2Config, Qwen2ForCausalLM), seed=12, dtype=F32,
         layout='new', sizes=(40, 5, 5, 8, 3, 32), tied=False,
         rope=dict(rope_type='linear', rope_theta=1e6, factor=2.0),
         more=dict(use_sliding_window=True, sliding_window=7, max_window_layers=0)),
    dict(name='qwen3', cls=(Qwen3Config, Qwen3ForCausalLM), seed=13, dtype=BF16, layout='new',
         sizes=(48, 6, 2, 20, 2, 40), tied=False, rope=dict(rope_type='default', rope_theta=1e6)),
    dict(name='qwen3_flat', cls=(Qwen3Config, Qwen3ForCausalLM), seed=14, dtype=F16, layout='flat',
         sizes=(32, 3, 1, 40, 2, 48), tied=True, rope=dict(rope_type='default', rope_theta=1e4),
         more=dict(attention_bias=True)),
    dict(name='llama2', cls=(LlamaConfig, LlamaForCausalLM), seed=15, dtype=F16, layout='flat',
         sizes=(60, 6, 6, 10, 2, 44), tied=False, rope=dict(rope_type='default', rope_theta=1e4),
         unsaid=('rope_theta', 'num_key_value_heads', 'head_dim')),
    dict(name='llama_pairs', cls=(LlamaConfig, LlamaForCausalLM), seed=20, dtype=BF16,
         layout='flat', sizes=(36, 3, 1, 20, 2, 32), tied=True, pairs=True,
         rope=dict(rope_type='linear', rope_theta=1e4, factor=1.5)),
    dict(name='llama3', cls=(LlamaConfig, LlamaForCausalLM), seed=16, dtype=BF16, layout='flat',
         sizes=(48, 6, 2, 24, 2, 40), tied=True, rope=LLAMA3, twice=True),
    dict(name='llama3_bias', cls=(LlamaConfig, LlamaForCausalLM), seed=17, dtype=F32, layout='new',
         sizes=(48, 3, 1, 16, 2, 36), tied=False, rope=LLAMA3,
         more=dict(attention_bias=True, mlp_bias=True)),
    dict(name='gemma3', cls=(Gemma3TextConfig, Gemma3ForCausalLM), seed=18, dtype=BF16,
         layout='new', sizes=(54, 3, 1, 24, 4, 40), tied=True,
         rope=dict(full_attention=dict(rope_type='linear', rope_theta=1e6, factor=8.0),
                   sliding_attention=dict(rope_type='default', rope_theta=1e2)),
         more=dict(sliding_window=9, sliding_window_pattern=3, query_pre_attn_scalar=20)),
    dict(name='gemma3_vl', cls=(Gemma3TextConfig, Gemma3ForCausalLM), seed=19, dtype=F16,
         layout='nested', sizes=(45, 3, 1, 40, 3, 24), tied=True,
         rope=dict(full_attention=dict(rope_type='default', rope_theta=1e6),
                   sliding_attention=dict(rope_type='default', rope_theta=1e4)),
         more=dict(sliding_window=5, sliding_window_pattern=2, query_pre_attn_scalar=40,
                   attn_logit_softcapping=4.0, final_logit_softcapping=3.0)),
]


def model_of(case):
    config, cls = case['cls']
    hidden, heads, kv, head_dim, layers, ffn = case['sizes']
    cfg = config(vocab_size=VOCAB, hidden_size=hidden, num_attention_heads=heads,
                 num_key_value_heads=kv, head_dim=head_dim, num_hidden_layers=layers,
                 intermediate_size=ffn, max_position_embeddings=4096, bos_token_id=BOS,
                 eos_token_id=EOS, pad_token_id=None, tie_word_embeddings=case['tied'],
                 rms_norm_eps=1e-5, rope_parameters=case['rope'], **case.get('more', {}))
    cfg._attn_implementation = 'eager'
    model = cls(cfg).float().eval()
    around = 0.0 if 'gemma' in case['name'] else 1.0  # Gemma stores norm weights less 1
    g = torch.Generator().manual_seed(case['seed'])
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn(p.shape, generator=g)
            if p.dim() == 1:
                r = 0.2 * r + (0.0 if name.endswith('bias') else around)
            elif 'embed_tokens' in name:
                r *= 0.05 if 'gemma' in case['name'] else 0.25 if case['tied'] else 0.5
            else:
                r *= 1.3 / (p[0].numel() ** 0.5)
            p.copy_(r.to(case['dtype']).float())  # what the file will say, exactly
    return model, cfg


def flat_config(c):
    """The keys and the rope layout of the checkpoints released until 2025."""
    names = ('vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads '
             'num_key_value_heads head_dim max_position_embeddings rms_norm_eps hidden_act '
             'bos_token_id eos_token_id use_sliding_window attention_bias tie_word_embeddings '
             'model_type').split()
    keep = {k: c[k] for k in names if k in c}
    rope = dict(c['rope_parameters'])
    keep['rope_theta'] = rope.pop('rope_theta')
    keep['rope_scaling'] = None if rope['rope_type'] == 'default' else rope
    return keep


def nested_config(c):
    """Gemma 3 with a vision tower as released: text_config names what differs from the class."""
    names = ('vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads '
             'num_key_value_heads head_dim rms_norm_eps sliding_window query_pre_attn_scalar '
             'attn_logit_softcapping final_logit_softcapping model_type').split()
    text = {k: c[k] for k in names}
    text['sliding_window_pattern'] = c['_sliding_window_pattern']
    return dict(model_type='gemma3', text_config=text, vision_config=dict(hidden_size=16),
                eos_token_id=[EOS, 3], image_token_index=5)


def save_config(case, cfg, path):
    c = json.loads(cfg.to_json_string(use_diff=False))
    if case['layout'] == 'flat':
        c = flat_config(c)
    elif case['layout'] == 'nested':
        c = nested_config(c)
    else:
        c = json.loads(cfg.to_json_string())
    for key in case.get('unsaid', ()):
        del c[key]
    with open(path, 'w') as f:
        json.dump(c, f, indent=1, sort_keys=True)
        f.write('\n')


def save_weights(case, model, path):
    out = {}
    for name, t in model.state_dict().items():
        if name == 'lm_head.weight' and case['tied'] and not case.get('twice'):
            continue
        if case['layout'] == 'nested':
            name = 'language_model.' + name
        if case.get('pairs') and ('q_proj' in name or 'k_proj' in name):  # the order GGUF has
            heads = t.view(-1, 2, case['sizes'][3] // 2, t.shape[1])
            t = heads.transpose(1, 2).reshape(t.shape)
        out[name] = t.to(case['dtype']).clone().contiguous()
    if case['layout'] == 'nested':
        out['vision_tower.vision_model.post_layernorm.weight'] = torch.ones(16)
        out['multi_modal_projector.mm_soft_emb_norm.weight'] = torch.ones(16)
    save_file(out, path)


def cap_attention(cap):
    """Gemma3Attention keeps its softcap and forgets to pass it on; Gemma 2's code is there."""
    eager = modeling_gemma3.eager_attention_forward
    eager = getattr(eager, 'func', eager)
    modeling_gemma3.eager_attention_forward = functools.partial(eager, softcap=cap)


def run(case, root):
    cap_attention(case.get('more', {}).get('attn_logit_softcapping'))
    model, cfg = model_of(case)
    d = os.path.join(root, case['name'])
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    save_config(case, cfg, os.path.join(d, 'config.json'))
    save_weights(case, model, os.path.join(d, 'model.safetensors'))
    ids = np.random.default_rng(case['seed']).integers(0, VOCAB - 2, N_PROMPT).tolist()
    greedy, margin, first = [], [], None
    with torch.no_grad():
        for _ in range(N_GREEDY):
            logits = model(input_ids=torch.tensor([ids + greedy]), use_cache=False).logits[0]
            first = logits if first is None else first
            top = torch.topk(logits[-1], 2).values
            margin.append(float(top[0] - top[1]))
            greedy.append(int(torch.argmax(logits[-1])))
    np.save(os.path.join(d, 'ids.npy'), np.array(ids, dtype='<i4'))
    np.save(os.path.join(d, 'logits.npy'), first.numpy().astype('<f4'))
    np.save(os.path.join(d, 'greedy.npy'), np.array(greedy, dtype='<i4'))
    np.save(os.path.join(d, 'margin.npy'), np.array(margin, dtype='<f4'))
    print(f'{case["name"]}: smallest margin {min(margin):.3g}, '
          f'logits {float(first.abs().max()):.3g} at most, greedy {greedy}')


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for case in CASES:
        run(case, sys.argv[1])


if __name__ == '__main__':
    main()
