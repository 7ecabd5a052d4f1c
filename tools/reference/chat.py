"""Golden conversations for tests/format/test_chat.c: chat templates rendered by Jinja as transformers does (pip install jinja2 gguf).

  chat.py golden OUT_JSON              templates written here in the shapes of the supported families
  chat.py files OUT_JSON GGUF...       the same conversations with the templates of real files, for chat_dump

Each case is a template, roles and contents, the thinking switch, and the text, or null where the template raises."""
import json
import random
import sys

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

SWITCH = "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
ANSWER = """{%- if '</think>' in text %}{%- set thought = text.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{%- set text = text.split('</think>')[-1].lstrip('\\n') %}{%- endif %}"""
QWEN3 = """{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}
{%- set ns = namespace(last=messages|length - 1, looking=true) %}
{%- for message in messages[::-1] %}{%- set i = messages|length - 1 - loop.index0 %}{%- if ns.looking and message.role == 'user' %}{%- set ns.looking = false %}{%- set ns.last = i %}{%- endif %}{%- endfor %}
{%- for message in messages %}
    {%- set text = message.content %}{%- set thought = '' %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}{{- '<|im_start|>' + message.role + '\\n' + text + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}""" + ANSWER + """
        {%- if loop.index0 > ns.last %}{{- '<|im_start|>assistant\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + text.lstrip('\\n') }}{%- else %}{{- '<|im_start|>assistant\\n' + text }}{%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}""" + SWITCH + "{%- endif %}"
ALTERNATE = "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}SYSTEM{% else %}{% set before = '' %}{% set turns = messages %}{% endif %}
{%- for message in turns -%}""" + ALTERNATE + """{% if message['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}
{{- '<start_of_turn>' + role + '\\n' + (before if loop.first else '') }}{{ message['content'] | trim }}{{ '<end_of_turn>\\n' }}
{%- endfor -%}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""
LLAMA3 = """{%- for message in messages %}{%- set text = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}{%- if loop.first %}{%- set text = bos_token + text %}{%- endif %}{{- text }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""
LLAMA31 = """{{- bos_token }}{%- if not date_string is defined %}{%- if strftime_now is defined %}{%- set date_string = strftime_now('%d %b %Y') %}{%- else %}{%- set date_string = '26 Jul 2024' %}{%- endif %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content']|trim %}{%- set messages = messages[1:] %}{%- else %}{%- set system = '' %}{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}{{- 'Cutting Knowledge Date: December 2023\\n' }}{{- 'Today Date: ' + date_string + '\\n\\n' }}{{- system }}{{- '<|eot_id|>' }}
{%- for message in messages %}{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set turns = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set turns = messages %}{% set system = false %}{% endif %}
{%- for message in turns %}""" + ALTERNATE + """{% if loop.index0 == 0 and system != false %}{% set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set text = message['content'] %}{% endif %}
{%- if message['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}{% else %}{{ ' ' + text.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""
TURN = "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
OPEN = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
TEMPLATES = {
    "chatml": ("ChatML", "{% for message in messages %}" + TURN + "{% endfor %}" + OPEN),
    "chatml_literal": ("ChatML", "{%- if tools %}{{- '<|im_start|>system\\n' }}{{- 'Tools are: ' }}{{- '<|im_end|>\\n' }}{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- else %}"
                       "{{- '<|im_start|>system\\nYou aren\\'t \\\\ \"quiet\".\\nBe brief.<|im_end|>\\n' }}{%- endif %}{%- for message in messages %}{%- if message.role != 'system' or not loop.first %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{%- endif %}{%- endfor %}"
                       + OPEN),
    "chatml_newline": ("ChatML", "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou read documents.<|im_end|>\n' }}{% endif %}" + TURN + "{% endfor %}" + OPEN),
    "chatml_plain": ("ChatML", "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system\nYou are a \u201chelpful\u201d assistant.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n"
                     "{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"),
    "chatml_trim": ("ChatML", "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>' + '\\n' }}{% endfor %}" + OPEN),
    "qwen3": ("Qwen3", QWEN3),
    "llama2": ("Llama 2", LLAMA2),
    "llama3": ("Llama 3", LLAMA3),
    "llama3_1": ("Llama 3", LLAMA31),
    "gemma2": ("Gemma", GEMMA.replace("SYSTEM", "{{ raise_exception('System role not supported') }}")),
    "gemma3": ("Gemma", GEMMA.replace("SYSTEM", "{% set before = messages[0]['content'] + '\\n\\n' %}{% set turns = messages[1:] %}")),
    # Not ours: the first two think otherwise, the third has other brackets, the last other dates.
    "thinks_always": ("none", QWEN3.replace(SWITCH, SWITCH.replace("{%- endif %}", "{%- else %}{{- '<think>\\n' }}{%- endif %}"))),
    "thinks_shortly": ("none", QWEN3.replace("</think>\\n\\n'", "</think>\\n'")),
    "brackets": ("none", "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"),
    "dates": ("none", LLAMA31.replace("December 2023", "August 2025")),
}
WORDS = ["Hello", " leading", "trailing \n", "\n\nbreaks\n", "\u00a0wide\u3000", "<|im_end|>", "</s>[INST]", "two words", "", " ", "<think>\nfirst\n</think>\n\nthen", "</think>x</think>\n\ny", "'quoted' \"twice\"", "\ud55c\uad6d\uc5b4"]


def render(template, messages, thinking, bos="<BOS>", eos="</s>"):
    def raise_exception(message): raise TemplateError(message)
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.globals["raise_exception"] = raise_exception
    env.filters["tojson"] = lambda x: json.dumps(x, ensure_ascii=False)
    try:
        text = env.from_string(template).render(messages=messages, add_generation_prompt=True, enable_thinking=thinking, bos_token=bos, eos_token=eos)
    except TemplateError:
        return None
    return text.removeprefix(bos).replace(bos, "<s>")


def conversations(r, n):
    yield from (["user"], ["system", "user"], ["user", "assistant", "user"], ["system", "user", "assistant", "user"], ["system"], ["assistant"], ["user", "user"], ["user", "assistant"],
                ["user", "system", "user"], ["system", "assistant", "user"], ["user", "assistant", "user", "assistant", "user"])
    for _ in range(n):
        turns = [["user", "assistant"][i % 2] for i in range(r.randrange(1, 8))]
        if r.random() < .2: turns[r.randrange(len(turns))] = r.choice(["user", "assistant", "system"])
        yield ["system"] * (r.random() < .5) + turns


def refused(kind, roles):
    """What Galley refuses though the template renders something: thoughts of an answer that nothing follows, and prompts that no family was trained on."""
    rest = roles[1:] if roles[0] == "system" else roles
    if kind == "Qwen3": return "user" in roles and "assistant" in roles[len(roles) - roles[::-1].index("user"):]
    if kind in ("Llama 2", "Gemma"): return not rest or "system" in rest or kind == "Llama 2" and rest[-1] == "assistant"
    return False


def cases(name, template, kind, r, n):
    for roles in conversations(r, n):
        messages = [dict(role=x, content=r.choice(WORDS[:9] + WORDS[10:])) for x in roles]
        if kind == "Llama 2":  # an empty question behind a system message would lose the frame's own line breaks
            for m in messages: m["content"] = m["content"].strip() and m["content"] or "x"
        thinking = r.random() < .5
        yield dict(template=name, roles=roles, contents=[m["content"] for m in messages], thinking=thinking,
                   text=None if kind == "none" or refused(kind, roles) else render(template, messages, thinking))


def write(path, templates, n):
    r = random.Random(5)
    out = dict(templates={k: dict(kind=kind, text=text) for k, (kind, text) in templates.items()},
               cases=[c for k, (kind, text) in templates.items() for c in cases(k, text, kind, r, 0 if kind == "none" else n)])
    with open(path, "w") as f: json.dump(out, f, ensure_ascii=True, indent=0)
    print(len(out["cases"]), "cases")


def files(path, names):
    import gguf
    text = lambda name: gguf.GGUFReader(name).fields["tokenizer.chat_template"].contents()
    write(path, {name.split("/")[-1]: ("ChatML" if "im_start" in text(name) else "Gemma" if "start_of_turn" in text(name) else "Llama 3", text(name)) for name in names}, 300)


if __name__ == "__main__":
    a = sys.argv[1:]
    if len(a) == 2 and a[0] == "golden": write(a[1], TEMPLATES, 24)
    elif len(a) >= 3 and a[0] == "files": files(a[1], a[2:])
    else: sys.exit(__doc__)
