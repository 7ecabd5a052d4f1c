#!/usr/bin/env python3
"""lint.py - the house rules that a machine can check.

    lint.py [--fast] [--report]

Prints file:line: message for each breach and exits 1 when there is one.  --fast leaves out the two
checks that start programs (clang-format, each header compiled alone); --report also lists what is
long but still allowed.  Only files known to git are looked at.
"""
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))

# Who may include what: the table of the layers, lowest first.  CMakeLists.txt enforces the same
# between libraries; here it holds for every single include.
LAYERS = {
    'src/base': {'src/base'},
    'kernels': {'src/base', 'kernels'},
    'src/format': {'src/base', 'kernels', 'src/format'},
    'vision': {'src/base', 'kernels', 'src/format', 'vision'},
    'layout': {'src/base', 'kernels', 'src/format', 'layout'},
    'src/model': {'src/base', 'kernels', 'src/format', 'src/model'},
    'spec': {'src/base', 'kernels', 'src/model', 'spec'},
    'src/engine': {'src/base', 'kernels', 'src/format', 'src/model', 'vision', 'spec', 'src/engine'},
    'src/document': {'src/base', 'layout', 'src/engine', 'src/document'},
    'src': {'src/base', 'src/engine', 'src/document', 'src'},
    'server': {'src/base', 'src', 'server'},
    'samples': {'samples'},  # <galley/galley.h> as installed, and what lies beside them
    'src/cli': {'src/base', 'src', 'server', 'src/format', 'src/cli'},
}
PUBLIC = {'src/galley_status.h': 'src/base', 'src/galley_types.h': 'src/base'}  # installed, but of layer 0
# document hands pages on: the picture of a page and a model's card are values of src/format.
EXTRA = {'src/document': {'src/format/card.h', 'src/format/jpeg.h', 'src/format/png.h', 'src/format/picture.h'}}
# Headers of libraries that only one folder may know.
FENCED = {
    r'poppler(/|-|\.h)|glib\.h|glib/|gio/|cairo': ('layout/galley_pdf/',),
    r'cJSON|cjson/': ('src/base/', 'src/document/', 'src/cli/'),
    r'.*intrin\.h': ('kernels/', 'src/base/'),
    r'tesseract/|leptonica/|allheaders\.h': ('layout/',),
}
MAX_LINES, SOFT_LINES = 1200, 800
MAX_FUNCTION, SOFT_FUNCTION = 120, 60
COLUMNS = {'.c': 100, '.h': 100, '.py': 120, '.sh': 120, '.cmake': 120}
TABLES = ()  # generated files and tables: exempt from the length rules
RECORDS = ('tools/train/galley-tiny/',)  # how the model was made, kept as it ran: no style asked
# Spelled in two halves, so that this file passes its own test.
BANNED_TEXT = {
    r'(?<![\w/.])/(home|root|work/(main|shared))/\w': 'a path of one machine',
    r'\b(TO' + r'DO|FIX' + r'ME|XX' + r'X)\b': 'unfinished business',
}
BANNED_CALLS = {
    r'\b(strcpy|strcat|sprintf|vsprintf|gets|system|popen|alloca)\s*\(': 'banned function',
}
BELOW_CLI = {  # not below src/cli
    r'(?<![\w>.])(atoi|strtok)\s*\(': 'hides bad input',
    r'(?<![\w>.])(exit|_exit|abort|quick_exit)\s*\(': 'ends the process',
    r'(?<![\w>.])(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign)\s*\(':
        'heap outside src/base/mem.h',
    r'(?<![\w>.])(getenv)\s*\(': 'reads the environment',
    r'(?<![\w>.])(printf|puts|putchar)\s*\(': 'writes to stdout',
}
ALLOWED = {  # (file, function): why
    ('src/base/mem.c', 'malloc'), ('src/base/mem.c', 'calloc'), ('src/base/mem.c', 'realloc'),
    ('src/base/mem.c', 'free'), ('src/base/mem.c', 'aligned_alloc'), ('src/base/mem.c', 'posix_memalign'),
    ('kernels/cpu.c', 'getenv'),          # GALLEY_CPU
    ('layout/pdf.c', 'getenv'),           # PATH, to find galley-pdf
    ('layout/pdf_child.c', '_exit'),      # between fork and exec
    ('src/document/render.c', 'free'),    # memory that cmark allocated
}
breaches, notes = [], []


def breach(path, line, message):
    breaches.append(f'{path}:{line}: {message}')


def tracked():
    out = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z'], stdout=subprocess.PIPE, check=True).stdout
    names = out.decode().split('\0')
    return sorted(n for n in names if n and os.path.isfile(os.path.join(ROOT, n)))


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8', newline='') as f:
        return f.read()


def strip_comments(text):
    """Comments and the insides of strings become blanks; lines stay where they are."""
    def blank(m):
        return re.sub(r'[^\n"]', ' ', m[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def module_of(path):
    if path in PUBLIC:
        return PUBLIC[path]
    return next((m for m in sorted(LAYERS, key=len, reverse=True) if path.startswith(m + '/')), None)


def check_includes(path, text):
    mod = module_of(path)
    for n, line in enumerate(text.split('\n'), 1):
        m = re.match(r'\s*#\s*include\s*(["<])([^">]+)', line)
        if not m:
            continue
        quoted, name = m[1] == '"', m[2]
        for fence, homes in FENCED.items():
            if not quoted and mod and re.match(fence, name) and not path.startswith(homes):
                breach(path, n, f'<{name}> is known only to {", ".join(homes)}')
        if not quoted:
            continue
        if path == 'src/galley.h' or mod == 'samples':
            name = f'{mod}/{name}'  # installed, or copied, beside the headers it includes
        if not os.path.isfile(os.path.join(ROOT, name)):
            breach(path, n, f'"{name}" is not a path from the root of the tree')
            continue
        target = module_of(name)
        if mod and target not in LAYERS[mod] and name not in EXTRA.get(mod, ()):
            breach(path, n, f'{mod} may not include {name} ({target})')
        if mod == 'layout' and not path.startswith('layout/galley_pdf/') and name.startswith('layout/galley_pdf/'):
            breach(path, n, 'galley-pdf is a program of its own')


def check_length(path, text):
    n = text.count('\n')
    if path in TABLES:
        return
    if n > MAX_LINES:
        breach(path, n, f'{n} lines, the limit is {MAX_LINES}')
    elif n > SOFT_LINES:
        notes.append(f'{path}: {n} lines, aim for {SOFT_LINES}')


def check_functions(path, text):
    """Functions are what stands between a brace in column 0 and its mate."""
    start = None
    for n, line in enumerate(text.split('\n'), 1):
        if line.startswith('{'):
            start = n
        elif line.startswith('}') and start and path not in TABLES:
            length = n - start + 1
            if length > MAX_FUNCTION:
                breach(path, start, f'a function of {length} lines, the limit is {MAX_FUNCTION}')
            elif length > SOFT_FUNCTION:
                notes.append(f'{path}:{start}: a function of {length} lines')
            start = None


def check_words(path, text, code):
    is_c = path.endswith(('.c', '.h'))
    product = module_of(path) not in (None, 'samples', 'src/cli') and not path.startswith('layout/galley_pdf/')
    for n, line in enumerate(text.split('\n'), 1):
        for pattern, what in BANNED_TEXT.items():
            m = re.search(pattern, line)
            if m:
                breach(path, n, f'"{m[0]}": {what}')
    if not is_c:
        return
    rules = dict(BANNED_CALLS)
    if product:
        rules.update(BELOW_CLI)
    for n, line in enumerate(code.split('\n'), 1):
        for pattern, what in rules.items():
            for m in re.finditer(pattern, line):
                if (path, m[1]) not in ALLOWED:
                    breach(path, n, f'{m[1]}: {what}')
        if re.match(r'\s*typedef\s+(struct|enum|union)\b[^(]*$', line):
            breach(path, n, 'structs, enums and unions are not typedefed')


def check_space(path, text):
    limit = COLUMNS.get(os.path.splitext(path)[1])
    if '\r' in text:
        breach(path, 1, 'carriage return')
    if text and not text.endswith('\n'):
        breach(path, text.count('\n') + 1, 'no newline at the end of the file')
    for n, line in enumerate(text.split('\n'), 1):
        if line != line.rstrip():
            breach(path, n, 'trailing white space')
        if '\t' in line and path.endswith(('.c', '.h', '.py', '.cmake')):
            breach(path, n, 'tab')
        if limit and len(line) > limit and path.startswith('tools/'):
            notes.append(f'{path}:{n}: {len(line)} columns')
        elif limit and len(line) > limit:
            breach(path, n, f'{len(line)} columns, the limit is {limit}')


def check_names(paths):
    seen = {}
    for path in paths:
        name = os.path.basename(path)
        if not name.endswith(('.c', '.h', '.cu', '.py')) or name == 'main.c':
            continue
        if name in seen:
            breach(path, 1, f'the name is taken by {seen[name]}')
        seen[name] = path


def check_script(path, text):
    if path.endswith('.py'):
        try:
            ast.parse(text)
        except SyntaxError as e:
            breach(path, e.lineno or 1, f'does not parse: {e.msg}')
    elif text.startswith('#!') and 'sh' in text.split('\n', 1)[0]:
        shell = 'bash' if 'bash' in text.split('\n', 1)[0] else 'sh'
        p = subprocess.run([shell, '-n', os.path.join(ROOT, path)], stderr=subprocess.PIPE)
        if p.returncode:
            breach(path, 1, p.stderr.decode().strip())
        if not re.search(r'^set -[a-z]*e|# no -e:', text, re.M):
            breach(path, 1, 'a script without set -e')
        if not os.access(os.path.join(ROOT, path), os.X_OK) and not path.endswith('setup.sh'):
            breach(path, 1, 'a script that is not executable')


def check_format(paths):
    tool = shutil.which('clang-format')
    version = subprocess.run([tool, '--version'], stdout=subprocess.PIPE).stdout.decode() if tool else ''
    if 'version 14.' not in version:
        print(f'lint: clang-format 14 is not here ({version.strip() or "none"}): format not checked')
        return
    for k in range(0, len(paths), 40):
        p = subprocess.run([tool, '--dry-run', '--ferror-limit=3', *paths[k:k + 40]], cwd=ROOT, stderr=subprocess.PIPE)
        for m in re.finditer(r'^(\S+?):(\d+):\d+: (?:warning|error)', p.stderr.decode(), re.M):
            breach(m[1], m[2], 'not as clang-format sets it')


def header_flags(path):
    if 'avx512' in path:
        return ['-mavx2', '-mfma', '-mf16c', '-mavx512f', '-mavx512vl', '-mavx512bw', '-mavx512dq']
    return ['-mavx2', '-mfma', '-mf16c'] if '/x86/' in path else []


def check_headers(paths):
    """Each header compiles alone, but for those that say what they are included after."""
    paths = [p for p in paths if not re.search(r'[Ii]ncluded (after|by)', read(p)[:600])]
    libs = 'libcjson libpcre2-8 libutf8proc libjpeg libpng tesseract lept poppler-glib cairo nettle'.split()
    p = subprocess.run(['pkg-config', '--cflags', *libs], stdout=subprocess.PIPE)
    flags = ['-std=c17', '-D_GNU_SOURCE', '-fsyntax-only', '-Wall', '-Wextra', '-I', ROOT, *p.stdout.decode().split()]
    cc = os.environ.get('CC', 'cc')

    def one(path):
        src = f'#include "{path}"\nextern int lint_unused;\n'
        p = subprocess.run([cc, *flags, *header_flags(path), '-x', 'c', '-'], input=src.encode(),
                           stderr=subprocess.PIPE, cwd=ROOT)
        return path, p.returncode, p.stderr.decode()
    with tempfile.TemporaryDirectory() as installed, ThreadPoolExecutor(os.cpu_count()) as pool:
        os.symlink(os.path.join(ROOT, 'src'), os.path.join(installed, 'galley'))  # <galley/galley.h>
        flags += ['-I', installed]
        for path, rc, said in pool.map(one, paths):
            if rc:
                first = next((ln for ln in said.split('\n') if 'error' in ln), said.split('\n')[0])
                breach(path, 1, f'does not compile alone: {first}')


def main():
    paths = tracked()
    texts = {}
    for path in paths:
        if not path.endswith(('.c', '.h', '.py', '.sh', '.cmake', '.txt', '.md', '.1')) and path not in ('.ci/run',):
            continue
        if path.startswith('models/') or path.endswith('.truth.md') or '/fixtures/' in path or '/golden/' in path \
                or '/corpus/' in path:
            continue
        try:
            texts[path] = read(path)
        except UnicodeDecodeError:
            breach(path, 1, 'not UTF-8')
    for path, text in texts.items():
        c = path.endswith(('.c', '.h'))
        code = strip_comments(text) if c else text
        if path.startswith(RECORDS):
            check_words(os.path.splitext(path)[0], text, code)
            continue
        if c:
            check_includes(path, text)
            check_functions(path, code)
        check_length(path, text) if not path.endswith('.md') else None
        check_words(path, text, code)
        check_space(path, text) if not path.endswith('.md') else None
        check_script(path, text)
    check_names(paths)
    c_files = [p for p in texts if p.endswith(('.c', '.h')) and not p.startswith(RECORDS)]
    if '--fast' not in sys.argv:
        check_format(c_files)
        check_headers([p for p in c_files if p.endswith('.h') and not p.startswith('tests/')])
    if '--report' in sys.argv:
        print('\n'.join(notes))
    print('\n'.join(breaches) if breaches else f'lint: {len(texts)} files, nothing to say')
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
