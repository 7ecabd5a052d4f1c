"""Synthetic document-region generator: text sources, layout, rendering, augmentation, and shard writer.
Each sample: RGB image resized to multiples of 28 px (as Qwen2VLImageProcessor's smart_resize does), its Markdown answer,
the glyph centres (for the auxiliary losses) and for every answer character the place where it stands in the image."""
from paths import ROOT, SHARDS
import random, io, json, os, sys, time, pickle, math, glob
import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageFilter
TT = '/usr/share/fonts/truetype/'; LM = '/usr/share/texmf/fonts/opentype/public/lm/'
def fam(base, r, b, i, bi, cat): return dict(r=base + r, b=base + b, i=base + i, bi=base + bi, cat=cat)
FONTS = {
 'DejaVuSans': fam(TT + 'dejavu/DejaVuSans', '.ttf', '-Bold.ttf', '-Oblique.ttf', '-BoldOblique.ttf', 'sans'),
 'DejaVuSansCond': fam(TT + 'dejavu/DejaVuSansCondensed', '.ttf', '-Bold.ttf', '-Oblique.ttf', '-BoldOblique.ttf', 'sans'),
 'DejaVuSerif': fam(TT + 'dejavu/DejaVuSerif', '.ttf', '-Bold.ttf', '-Italic.ttf', '-BoldItalic.ttf', 'serif'),
 'DejaVuMono': fam(TT + 'dejavu/DejaVuSansMono', '.ttf', '-Bold.ttf', '-Oblique.ttf', '-BoldOblique.ttf', 'mono'),
 'LibSans': fam(TT + 'liberation/LiberationSans-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'LibSans2': fam(TT + 'liberation/LiberationSans-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'LibNarrow': fam(TT + 'liberation/LiberationSansNarrow-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'LibSerif': fam(TT + 'liberation/LiberationSerif-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'serif'),
 'LibSerif2': fam(TT + 'liberation/LiberationSerif-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'serif'),
 'LibMono': fam(TT + 'liberation/LiberationMono-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'mono'),
 'FreeSans': fam(TT + 'freefont/FreeSans', '.ttf', 'Bold.ttf', 'Oblique.ttf', 'BoldOblique.ttf', 'sans'),
 'FreeSerif': fam(TT + 'freefont/FreeSerif', '.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'serif'),
 'FreeMono': fam(TT + 'freefont/FreeMono', '.ttf', 'Bold.ttf', 'Oblique.ttf', 'BoldOblique.ttf', 'mono'),
 'Carlito': fam(TT + 'crosextra/Carlito-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'Carlito2': fam(TT + 'crosextra/Carlito-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'Lato': fam(TT + 'lato/Lato-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'OpenSans': fam(TT + 'open-sans/OpenSans-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'NotoSans': fam(TT + 'noto/NotoSans-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'NotoSerif': fam(TT + 'noto/NotoSerif-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'serif'),
 'LMRoman': fam(LM + 'lmroman10-', 'regular.otf', 'bold.otf', 'italic.otf', 'bolditalic.otf', 'serif'),
 'LMRoman12': fam(LM + 'lmroman12-', 'regular.otf', 'bold.otf', 'italic.otf', 'bold.otf', 'serif'),
 'LMSans': fam(LM + 'lmsans10-', 'regular.otf', 'bold.otf', 'oblique.otf', 'boldoblique.otf', 'sans'),
 'LMMono': fam(LM + 'lmmono10-', 'regular.otf', 'regular.otf', 'italic.otf', 'italic.otf', 'mono'),
}
HELD = {  # never trained on
 'Roboto': fam(TT + 'roboto/unhinted/RobotoTTF/Roboto-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'sans'),
 'Caladea': fam(TT + 'crosextra/Caladea-', 'Regular.ttf', 'Bold.ttf', 'Italic.ttf', 'BoldItalic.ttf', 'serif'),
}
def installed(tab):
    """Only the families of which every file is there, so that a missing font package means less variety, not an error."""
    return {k: v for k, v in tab.items() if all(os.path.exists(p) for n, p in v.items() if n != 'cat')}
FONTS, HELD = installed(FONTS), installed(HELD)
if not HELD: HELD = FONTS
EXTRA = '“”‘’–—…•€£§©®°éèêüöäñçáíóúßà×±™'
CHARS = [chr(c) for c in range(33, 127)] + list(EXTRA)
CID = {c: i + 1 for i, c in enumerate(CHARS)}          # 0 = blank
NCLS = len(CHARS) + 1
PSLOT, CSLOT = 3, 8                                     # glyph slots per 14x14 patch and per 28x28 cell
_fc = {}
def font(path, size):
    k = (path, size); f = _fc.get(k)
    if f is None:
        if len(_fc) > 1500: _fc.clear()
        f = _fc[k] = (ImageFont.truetype(path, size), {})
    return f

class Text:
    def __init__(self, R):
        self.R = R
        self.paras = open(ROOT + '/work/corpus.txt').read().split('\n')
        self.paras = [''.join(c for c in p.replace('\\f5', '').replace('\\fR', '').replace('\\e', '') if c == ' ' or c in CID) for p in self.paras]
        self.words = [w for w in open('/usr/share/dict/words').read().split() if all(c in CID for c in w) and not w.endswith("'s")]
        self.first = 'James Mary John Linda Robert Susan Michael Karen William Nancy David Lisa Richard Betty Joseph Helen Thomas Sandra Charles Donna Anna Peter Paul Laura Emma Hans Jürgen María José André Zoë Chloe Oliver Sofia Lucas Mia Noah Eva Ivan Olga Yuki Wei Priya Ahmed Fatima'.split()
        self.last = 'Smith Johnson Williams Brown Jones Garcia Miller Davis Wilson Anderson Taylor Moore Jackson Martin Lee Thompson White Harris Clark Lewis Robinson Walker Young Allen King Wright Scott Hill Green Adams Baker Nelson Carter Mitchell Perez Roberts Müller Schmidt Novak Rossi Ferrari Dubois Ivanov Tanaka Chen Wang Patel Khan Singh Nguyen O\'Brien McDonald'.split()
        self.items = 'Widget Bolt Cable Paper Toner Chair Desk Lamp Monitor Keyboard Mouse Adapter Battery License Support Service Consulting Training Hosting Domain Shipping Handling Discount Subtotal Total Tax Deposit Balance Fee Rent Insurance Coffee Tea Water Lunch Hotel Flight Taxi Parking Fuel Repair Labor Parts Filter Valve Pump Motor Sensor Switch Router Printer Scanner Camera Tablet Phone Case Stand Bracket Panel Screw Nut Washer Spring Gasket Seal Pipe Hose Clamp Tape Glue Paint Brush Roller Ladder'.split()
        self.heads = 'Item Qty Price Total Amount Date Name Description Code ID No. Unit Rate Tax Net Gross Year Month Country City Region Status Type Size Weight Volume Count Share Change Mean Max Min Score Rank Model Version Method Result Value Parameter Metric Accuracy Precision Recall Time Cost Revenue Profit Sales Quarter Q1 Q2 Q3 Q4 Product Category Customer Order Invoice Account Balance Debit Credit Reference Notes Source Target Group Class Level Grade Age Height'.split()
        self.keys = 'Name Date Invoice Order Phone Fax Email Address City State Country Zip Total Subtotal Tax Due Amount Account Customer Reference Status Type Version Author Title Subject From To Cc Page Number Quantity Weight Model Serial Contact Department Project Client Vendor Terms Currency Signature Location Room Floor Website License'.split()
    def natural(self, n):
        R = self.R; out = ''
        while len(out) < n:
            p = R.choice(self.paras)
            if len(p) > n and R.random() < .6:
                k = R.randrange(len(p) - n // 2); k = p.rfind(' ', 0, k) + 1; p = p[k:]
            out += (' ' if out else '') + p
        out = out[:n + R.randrange(8)]
        k = out.rfind(' ')
        return out[:k] if k > 5 else out
    def num(self):
        R = self.R; t = R.randrange(14)
        v = int(10 ** R.uniform(0, 7))
        if t == 0: return str(R.randrange(100))
        if t == 1: return f'{v:,}'
        if t == 2: return f'{v / 100:,.2f}'
        if t == 3: return R.choice('$€£$') + f'{v / 100:,.2f}'
        if t == 4: return f'{R.uniform(0, 100):.{R.randrange(3)}f}%'
        if t == 5: return f'{R.uniform(-10, 10):.{R.randrange(1, 5)}f}'
        if t == 6: return str(v)
        if t == 7: return f'({v / 100:,.2f})'
        if t == 8: return str(R.randrange(1900, 2030))
        if t == 9: return f'{R.uniform(0, 1):.{R.randrange(2, 5)}f}'
        if t == 10: return R.choice(['USD ', 'EUR ', 'GBP ', 'CHF ']) + f'{v / 100:,.2f}'
        if t == 11: return R.choice('+-') + f'{R.uniform(0, 30):.1f}' + R.choice(['', '%'])
        if t == 12: return f'{v:,}'.replace(',', R.choice(['.', ' ', ',']))
        return f'{R.randrange(1000)}.{R.randrange(100):02d}'
    def date(self):
        R = self.R; y, m, d = R.randrange(1980, 2031), R.randrange(1, 13), R.randrange(1, 29)
        mn = 'January February March April May June July August September October November December'.split()[m - 1]
        return R.choice([f'{y}-{m:02d}-{d:02d}', f'{d:02d}/{m:02d}/{y}', f'{m}/{d}/{y}', f'{d} {mn} {y}', f'{mn} {d}, {y}', f'{d:02d}.{m:02d}.{y}', f'{mn[:3]} {d}, {y}', f'{mn[:3]} {y}', f'{d}-{mn[:3]}-{y % 100:02d}'])
    def name(self): return self.R.choice(self.first) + ' ' + self.R.choice(['', '', chr(self.R.randrange(65, 91)) + '. ']) + self.R.choice(self.last)
    def word(self): return self.R.choice(self.words)
    def code(self):
        R = self.R; A = R.choice(['ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789', '0123456789', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', '0123456789abcdef', 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'])
        parts = [''.join(R.choice(A) for _ in range(R.randrange(2, 7))) for _ in range(R.choice([1, 1, 2, 2, 3, 4]))]
        return R.choice(['-', '-', '/', '.', '_', '']).join(parts)
    def email(self):
        R = self.R
        return (R.choice(self.first) + R.choice(['.', '_', '']) + R.choice(self.last)).lower().replace("'", '').encode('ascii', 'ignore').decode() + '@' + self.host()
    def host(self): return ''.join(c for c in self.word().lower() if c.isalnum() and c < '\x7f')[:12] + self.R.choice(['.com', '.org', '.net', '.io', '.de', '.co.uk', '.edu', '.gov'])
    def url(self):
        R = self.R
        return R.choice(['https://', 'http://', 'www.', 'https://www.']) + self.host() + ''.join('/' + R.choice([self.word().lower(), self.code()]) for _ in range(R.randrange(3))) + R.choice(['', '', '.html', '/', '?id=' + str(R.randrange(9999))])
    def phone(self):
        R = self.R; d = lambda n: ''.join(R.choice('0123456789') for _ in range(n))
        return R.choice([f'({d(3)}) {d(3)}-{d(4)}', f'+{d(2)} {d(3)} {d(4)} {d(3)}', f'{d(3)}-{d(3)}-{d(4)}', f'+1 {d(3)} {d(3)} {d(4)}', f'0{d(3)} {d(6)}'])
    def rnd(self):
        R = self.R
        A = ''.join(CHARS[:94]) if R.random() < .5 else 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789' + (EXTRA if R.random() < .3 else '')
        return ''.join(R.choice(A) for _ in range(R.randrange(2, 10)))
    def title(self, n=None):
        R = self.R; n = n or R.randrange(1, 7)
        ws = [self.word() for _ in range(n)] if R.random() < .4 else self.natural(n * 7).split()[:n]
        s = ' '.join(w[:1].upper() + w[1:] if len(w) > 3 or i == 0 else w for i, w in enumerate(ws)).strip(' ,;:-')
        return s or 'Summary'
    def ent(self):
        R = self.R; t = R.randrange(16)
        return [self.num, self.num, self.num, self.date, self.name, self.code, self.email, self.url, self.phone, self.rnd, self.rnd, self.code, lambda: self.title(2).upper(), lambda: self.title(2),
                lambda: R.choice(self.keys) + ': ' + R.choice([self.num, self.date, self.name, self.code])(), lambda: R.choice(self.items) + R.choice([' ', ' x ', ', ']) + self.num()][t]()
    def free(self, n):
        """A text of about n characters without line structure."""
        R = self.R; t = R.random()
        if t < .55: s = self.natural(n)
        elif t < .72:
            ws = self.natural(n).split(); p = R.choice([.08, .2])
            s = ' '.join(self.ent() if R.random() < p else w for w in ws)
        elif t < .86:
            s = ''
            while len(s) < n: s += (' ' if s else '') + self.ent() + (R.choice(',;.:') if R.random() < .15 else '')
        else:
            s = ''
            while len(s) < n:
                w = self.word()
                if R.random() < .15: w = w.upper()
                elif R.random() < .2: w = w[:1].upper() + w[1:]
                s += (' ' if s else '') + w + (R.choice([',', '.', ';', ':', '!', '?', '"', ')']) if R.random() < .12 else '')
        u = R.random()
        if u < .04: s = s.upper()
        elif u < .07: s = s.title()
        elif u < .15: s = s.replace(' "', ' “').replace('"', '”').replace("'", '’').replace(' - ', ' – ').replace('--', '—')
        elif u < .18:
            k = R.choice(EXTRA); i = R.randrange(len(s)); s = s[:i] + k + s[i:]
        s = ''.join(c for c in s if c == ' ' or c in CID)
        s = ' '.join(s.split())
        if len(s) > n * 1.3 + 8: s = s[:int(n * 1.3) + 8].rsplit(' ', 1)[0]
        return s.strip() or 'Text'

def layout_free_answer(R, T):
    """Answer-like text for tokenizer training."""
    t = R.random()
    if t < .5: return T.free(R.randrange(10, 200))
    if t < .6: return '# ' + T.title() if R.random() < .4 else '## ' + T.title()
    if t < .7: return '\n'.join(('- ' if R.random() < .6 else f'{i + 1}. ') + T.free(R.randrange(5, 40)) for i in range(3))
    if t < .9:
        n = R.randrange(2, 7)
        return '| ' + ' | '.join(R.choice(T.heads) for _ in range(n)) + ' |\n|' + '---|' * n + '\n' + '\n'.join('| ' + ' | '.join(R.choice([T.num, T.word, T.date, T.num, T.code])() for _ in range(n)) + ' |' for _ in range(3))
    return '\n'.join(R.choice(T.keys) + ': ' + T.ent() for _ in range(3))

class Canvas:
    """Collects glyph runs and rules; text items carry the answer index of every character (or -1)."""
    def __init__(self): self.ops = []; self.x1 = self.y1 = 0
    def text(self, x, y, s, f, size, idx, alpha=255):
        self.ops.append(('t', x, y, s, f, size, idx, alpha))
        w = f[0].getlength(s)
        self.x1 = max(self.x1, x + w); self.y1 = max(self.y1, y + size * .28)
        return w
    def rect(self, x0, y0, x1, y1, alpha): self.ops.append(('r', x0, y0, x1, y1, alpha)); self.x1 = max(self.x1, x1); self.y1 = max(self.y1, y1)
def wlen(f, w):
    c = f[1]; r = c.get(w)
    if r is None:
        r = f[0].getlength(w)
        if len(c) < 4000: c[w] = r
    return r

def pick_font(R, held=None, cat=None):
    tab = HELD if held else FONTS
    names = list(tab)
    if not held and cat is None: names = [n for n in names if tab[n]['cat'] != 'mono' or R.random() < .4] or ['LibSans']
    if cat: names = [n for n in names if tab[n]['cat'] == cat] or names
    return tab[R.choice(names)]
def style(R, p=(.8, .0, .2, .0)): return R.choices(['r', 'b', 'i', 'bi'], p)[0]

def wrap(R, words, f, width, hyph):
    """Greedy wrap. Returns lines of [(string, answer offset within paragraph, n answer chars)]; hyphenated words are split."""
    sp = wlen(f, ' '); lines = []; cur = []; x = 0; off = 0
    for w in words:
        lw = wlen(f, w)
        if cur and x + sp + lw > width:
            room = width - x - sp
            if hyph and len(w) > 6 and w.isalpha() and room > 0:
                k = 0
                for j in range(3, len(w) - 2):
                    if wlen(f, w[:j] + '-') <= room: k = j
                if k and R.random() < .7:
                    cur.append((w[:k] + '-', off, k)); lines.append(cur); cur = [(w[k:], off + k, len(w) - k)]; x = wlen(f, w[k:]); off += len(w) + 1; continue
            lines.append(cur); cur = [(w, off, len(w))]; x = lw
        else:
            cur.append((w, off, len(w))); x += (sp if len(cur) > 1 else 0) + lw
        off += len(w) + 1
    if cur: lines.append(cur)
    return lines
def put_lines(C, R, lines, f, size, x0, y, width, pitch, align, base):
    """Draws wrapped lines from baseline y on; base = answer offset of the paragraph. Returns the next baseline."""
    sp = wlen(f, ' ')
    for li, ln in enumerate(lines):
        tot = sum(wlen(f, w) for w, _, _ in ln) + sp * (len(ln) - 1)
        if align == 'j' and li < len(lines) - 1 and len(ln) > 1 and tot > width * .6:
            x = x0; gap = (width - sum(wlen(f, w) for w, _, _ in ln)) / (len(ln) - 1)
            for w, o, n in ln:
                C.text(x, y, w, f, size, [base + o + i if i < n else -1 for i in range(len(w))]); x += wlen(f, w) + gap
        else:
            x = x0 + {'l': 0, 'j': 0, 'c': (width - tot) / 2, 'r': width - tot}[align]
            s = ''; idx = []
            for w, o, n in ln:
                if s: s += ' '; idx.append(-1)
                s += w; idx += [base + o + i if i < n else -1 for i in range(len(w))]
            C.text(x, y, s, f, size, idx)
        y += pitch
    return y

def k_par(C, R, T, A, held):
    F = pick_font(R, held); size = R.choice([16, 17, 18, 18, 20, 20, 22, 22, 24, 24, 26, 28, 30]); f = font(F[style(R)], size)
    pitch = size * R.uniform(1.15, 1.6); area = A * 784
    nmax = max(1, min(8, int(area / (pitch * 180)))); n = R.randint(1, nmax) if R.random() < .8 else nmax
    if R.random() < .25: n = 1
    wmax = min(1100, (area / (n * pitch + 16)) - 12)
    width = max(60, wmax * R.uniform(.45, 1)) if n < 3 else max(120, wmax * R.uniform(.6, 1))
    nch = int(n * width / (size * .47)) - R.randrange(max(1, int(width / (size * .5) * .7)))
    s = T.free(max(3, nch)); words = s.split(' ')
    lines = wrap(R, words, f, width, R.random() < .35)
    while len(lines) > 8: words = words[:int(len(words) * .8)]; lines = wrap(R, words, f, width, False)
    ans = ' '.join(words)
    put_lines(C, R, lines, f, size, 0, size, width, pitch, R.choices('ljcr', [.62, .25, .1, .03])[0], 0)
    return ans
def k_head(C, R, T, A, held):
    F = pick_font(R, held); h1 = R.random() < .5; C.noscale = True      # the level depends on the pixel size
    # rule: rendered size above 34 px is a level-1 heading; bold text of 20..32 px a level-2 heading
    size = R.randint(35, 48) if h1 else R.randint(20, 32)
    f = font(F['b' if not h1 or R.random() < .65 else style(R, (.8, 0, .1, .1))], size)
    wmax = min(1000, A * 784 / (size * 1.6))
    if R.random() < .25 and A > 40: wmax = min(wmax, A * 784 / (size * 2.9)); two = True
    else: two = False
    s = T.title(R.randrange(1, 9))
    t = R.random()
    if t < .25: s = R.choice([f'{R.randrange(1, 12)}. ', f'{R.randrange(1, 10)}.{R.randrange(1, 10)} ', f'Chapter {R.randrange(1, 30)}: ', f'{R.randrange(1, 9)} ', 'Section ' + chr(R.randrange(65, 75)) + ' ', 'Appendix A: ']) + s
    elif t < .35: s += ' ' + R.choice([T.num, T.date, T.code])()
    elif t < .42: s = R.choice(['INVOICE', 'Abstract', 'Introduction', 'References', 'Summary', 'Table of Contents', 'Conclusions', 'RECEIPT', 'Methods', 'Results', 'Annual Report', 'Overview'])
    if R.random() < .2: s = s.upper()
    s = ''.join(c for c in s if c == ' ' or c in CID); words = s.split() or ['Summary']
    while len(words) > 1 and wlen(f, ' '.join(words)) > wmax * (2 if two else 1): words.pop()
    while len(words) == 1 and wlen(f, words[0]) > wmax and len(words[0]) > 4: words[0] = words[0][:-2]
    tot = wlen(f, ' '.join(words)); width = max(tot / 1.7, max(wlen(f, w) for w in words)) if two and len(words) > 2 else tot + 2
    lines = wrap(R, words, f, width, False)
    pre = '# ' if h1 else '## '
    put_lines(C, R, lines, f, size, 0, size, width, size * R.uniform(1.1, 1.35), R.choice('lllc'), len(pre))
    return pre + ' '.join(words)
def k_list(C, R, T, A, held):
    F = pick_font(R, held); size = R.choice([16, 17, 18, 18, 20, 20, 22, 22, 24, 26, 28]); f = font(F[style(R, (.92, 0, .08, 0))], size)
    pitch = size * R.uniform(1.15, 1.5); area = A * 784
    n = R.randint(2, max(2, min(6, int(area / (pitch * 230))))); gap = R.choice([0, 0, 2, 5, 9])
    num = R.random() < .42; st = R.choice(['.', '.', ')']) if num else R.choice(['•', '•', '•', '-', '–', '*', 'sq', 'circ', 'o'])
    start = 1 if R.random() < .8 else R.randrange(1, 12)
    per = area / n / pitch        # px of line per item
    y = size; ans = ''; indent = R.choice([0, 0, R.randrange(30)])
    ind2 = indent + (wlen(f, f'{start + n - 1}{st}') if num else size * .5) + size * R.uniform(.3, 1.0)
    wmax = min(900, R.choice([per, per / 2, per * .9])) - ind2
    wmax = max(80, wmax)
    for i in range(n):
        nl = 1 if per < 350 or R.random() < .65 else R.randint(1, max(1, min(3, int(per / (wmax + ind2)))))
        t = R.random()
        nch = max(2, int(nl * wmax / (size * .52)) - R.randrange(max(1, int(wmax / size * 1.5))))
        s = T.ent() if t < .12 else T.title(R.randrange(1, 4)) if t < .25 else T.free(nch)
        s = ''.join(c for c in s if c == ' ' or c in CID); ws = s.split() or ['Item']
        ls = wrap(R, ws, f, wmax, R.random() < .15)
        while len(ls) > 3 and len(ws) > 1: ws = ws[:-1]; ls = wrap(R, ws, f, wmax, False)
        if ws[0][0] in '-*•#|': ws[0] = 'A' + ws[0][1:]; ls = wrap(R, ws, f, wmax, False)
        pre = f'{start + i}. ' if num else '- '
        if ans: ans += '\n'
        if num:
            m = f'{start + i}{st}'; C.text(indent, y, m, f, size, [len(ans) + j if j < len(m) - 1 or st == '.' else -1 for j in range(len(m))])
        elif st in ('sq', 'circ', 'o'): C.ops.append((st, indent + size * .12, y - size * .42, size * .26, len(ans)))
        else: C.text(indent, y, st, f, size, [len(ans)])
        base = len(ans) + len(pre); ans += pre + ' '.join(ws)
        y = put_lines(C, R, ls, f, size, ind2, y, wmax, pitch, 'l', base) + gap
    return ans
def k_table(C, R, T, A, held):
    F = pick_font(R, held); size = R.choice([16, 16, 17, 18, 18, 20, 20, 22, 24]); f = font(F['r'], size); fb = font(F['b'], size) if R.random() < .65 else f
    area = A * 784; rowh = size * R.uniform(1.25, 2.0); pad = size * R.uniform(.35, 1.0)
    nc = R.randint(2, 6); nr = R.randint(2, 8)
    kinds = []
    for c in range(nc):
        kinds.append(R.choice(['text', 'text', 'word', 'int', 'cur', 'dec', 'pct', 'date', 'code', 'name', 'num', 'year']))
    if R.random() < .7: kinds[0] = R.choice(['text', 'word', 'name', 'item', 'code'])
    def cell(k):
        if R.random() < .03: return ''
        return dict(text=lambda: T.title(R.randrange(1, 4)), word=lambda: R.choice([T.word().capitalize(), R.choice(T.items), T.word()]), int=lambda: R.choice([f'{int(10 ** R.uniform(0, 6)):,}', str(R.randrange(1000))]),
            cur=lambda: R.choice(['$', '$', '€', '£', '']) + f'{10 ** R.uniform(0, 5):,.2f}', dec=lambda: f'{R.uniform(0, 100):.{R.randrange(1, 4)}f}', pct=lambda: f'{R.uniform(0, 100):.1f}%', date=T.date, code=T.code, name=T.name,
            num=T.num, year=lambda: str(R.randrange(1950, 2030)), item=lambda: R.choice(T.items) + R.choice(['', ' ' + R.choice('ABCDEXYZ'), ' ' + str(R.randrange(100))]))[k]()
    clean = lambda s: ' '.join(''.join(c for c in s if c != '|' and (c == ' ' or c in CID)).split())
    hd = [clean(R.choice(T.heads) if R.random() < .6 else T.title(R.randrange(1, 3))) for _ in range(nc)]
    if R.random() < .08: hd[0] = ''
    rows = [hd] + [[clean(cell(k)) for k in kinds] for _ in range(nr - 1)]
    # shrink to the area budget
    while True:
        cw = [max(wlen(fb if r == 0 else f, rows[r][c]) for r in range(len(rows))) + 2 * pad for c in range(len(rows[0]))]
        if (sum(cw) + 16) * (rowh * len(rows) + 16) <= area and sum(cw) < 1090: break
        if sum(cw) >= 1090 or (len(rows[0]) > 2 and (len(rows) <= 3 or R.random() < .5)):
            if len(rows[0]) <= 2: return None
            rows = [r[:-1] for r in rows]; kinds = kinds[:-1]
        elif len(rows) > 2: rows = rows[:-1]
        else: return None
    nc, nr = len(rows[0]), len(rows)
    W = sum(cw); slack = min(1090, area / (rowh * nr + 16) - 16) - W
    if slack > 0:
        ex = slack * R.choice([0, R.random() * .5, R.random()]) / nc
        cw = [w + ex for w in cw]; W = sum(cw)
    al = ['l' if k in ('text', 'word', 'date', 'code', 'name', 'item') else R.choice('rrrlc') for k in kinds]
    if R.random() < .15: al = ['c'] * nc
    if al[0] != 'l' and R.random() < .5: al[0] = 'l'
    xs = [0]
    for w in cw: xs.append(xs[-1] + w)
    H = rowh * nr; mode = R.choice(['full', 'full', 'h', 'h', 'none', 'head', 'book']); lw = R.choice([1, 1, 1, 2]); la = R.choice([255, 255, 160, 90])
    if R.random() < .25: C.rect(0, 0, W, rowh, R.choice([20, 35, 50]))
    elif R.random() < .15:
        for r in range(1, nr, 2): C.rect(0, r * rowh, W, (r + 1) * rowh, 22)
    if mode == 'full':
        for x in xs: C.rect(x, 0, x + lw, H, la)
    if mode in ('full', 'h'):
        for r in range(nr + 1): C.rect(0, r * rowh, W, r * rowh + lw, la)
    if mode in ('head', 'book'): C.rect(0, rowh, W, rowh + lw, la)
    if mode == 'book': C.rect(0, 0, W, lw + 1, la); C.rect(0, H, W, H + lw + 1, la)
    ans = ''
    for r, row in enumerate(rows):
        ans += ('\n|' if r else '|')
        for c, s in enumerate(row):
            ans += ' '
            g = fb if r == 0 else f
            w = wlen(g, s); a = al[c]
            x = xs[c] + {'l': pad, 'r': cw[c] - pad - w, 'c': (cw[c] - w) / 2}[a]
            if s: C.text(x, r * rowh + rowh * .5 + size * .34, s, g, size, list(range(len(ans), len(ans) + len(s))))
            ans += s + ' |'
        if r == 0: ans += '\n|' + '---|' * nc
    return ans
def k_code(C, R, T, A, held):
    mono = R.random() < .4; F = pick_font(R, held, 'mono' if mono and not held else None); size = R.choice([16, 17, 18, 20, 20, 22, 24]); f = font(F['r'], size); fb = font(F['b'], size) if R.random() < .3 else f
    pitch = size * R.uniform(1.15, 1.6); area = A * 784
    n = R.randint(2, max(2, min(7, int(area / (pitch * 220))))); wmax = min(900, area / (n * pitch + 16) - 12); ans = ''; y = size
    t = R.random(); vx = None
    if t < .55: vx = None if R.random() < .6 else size * R.uniform(6, 9)
    for i in range(n):
        key = None
        if t < .55:
            key = R.choice(T.keys) + (' ' + R.choice(['No.', 'Name', 'Date', 'ID', 'Number']) if R.random() < .25 else '') + ':'; s = R.choice([T.num, T.date, T.name, T.code, T.email, T.phone, lambda: T.title(3)])()
        elif t < .75: s = [lambda: T.name(), lambda: f'{R.randrange(1, 9999)} {T.title(2)} ' + R.choice(['St', 'Street', 'Road', 'Ave', 'Lane', 'Blvd.']), lambda: f'{T.title(1)}, {chr(R.randrange(65, 91))}{chr(R.randrange(65, 91))} {R.randrange(10000, 99999)}', T.phone, T.email, T.url, lambda: T.title(1)][i % 7]()
        else:
            v = lambda: R.choice([T.word().lower(), 'x', 'i', 'n', 'data', 'self', 'tmp', 'result', 'key'])
            s = R.choice([lambda: f'{v()} = {v()}({v()}, {R.randrange(99)})', lambda: f'import {v()}', lambda: f'def {v()}({v()}):', lambda: f'if {v()} == {R.randrange(99)}:', lambda: f'return {v()}[{v()}]', lambda: f'{v()}.{v()}("{v()}")', lambda: f'$ {v()} --{v()} {v()}.txt',
                          lambda: f'for {v()} in {v()}:', lambda: f'{v()}={R.randrange(9999)}', lambda: f'# {T.natural(20)}', lambda: f'sudo apt-get install {v()}', lambda: f'int {v()}[{R.randrange(99)}];', lambda: '}', lambda: f'"{v()}": {T.num()},'])()
        s = ''.join(c for c in s if c == ' ' or c in CID); s = ' '.join(s.split()) or 'x'
        while wlen(f, s) + (wlen(fb, key + ' ') if key else 0) > wmax and len(s) > 4: s = s[:-1].strip()
        if i: ans += '\n'
        x = 0
        if key:
            C.text(0, y, key, fb, size, list(range(len(ans), len(ans) + len(key)))); ans += key + ' '; x = vx if vx and vx > wlen(fb, key + ' ') else wlen(fb, key + ' ')
        C.text(x, y, s, f, size, list(range(len(ans), len(ans) + len(s)))); ans += s; y += pitch
    return ans
KINDS = dict(par=k_par, head=k_head, list=k_list, table=k_table, code=k_code)

def smart(h, w, f=28, mn=3136, mx=256 * 784):
    hb, wb = max(f, round(h / f) * f), max(f, round(w / f) * f)
    if hb * wb > mx:
        b = math.sqrt(h * w / mx); hb, wb = max(f, math.floor(h / b / f) * f), max(f, math.floor(w / b / f) * f)
    elif hb * wb < mn:
        b = math.sqrt(mn / (h * w)); hb, wb = math.ceil(h * b / f) * f, math.ceil(w * b / f) * f
    return hb, wb

def render(C, R, nR, A, clean=0.25):
    """Draws the canvas; returns the RGB image (smart-resized) and the glyph list [(char, x, y, answer index)]."""
    ml, mr, mt, mb = [R.randint(2, 30) if R.random() < .5 else R.randint(2, 9) for _ in range(4)]
    W, H = int(C.x1 + ml + mr + 1), int(C.y1 + mt + mb + 1)
    M = Image.new('L', (W, H), 0); D = ImageDraw.Draw(M); gl = []; k = 0
    for op in C.ops:
        if op[0] == 't':
            _, x, y, s, f, size, idx, al = op; x += ml; y += mt
            D.text((x, y), s, font=f[0], fill=al, anchor='ls')
            adv = np.array([wlen(f, c) for c in s]); tot = wlen(f, s) if len(s) < 25 else f[0].getlength(s)
            cs = np.cumsum(adv); sc = tot / max(cs[-1], 1e-6); cx = x + (cs - adv / 2) * sc; cy = y - size * .3
            for c, xx, i in zip(s, cx, idx):
                if c != ' ': gl.append((c, xx, cy, i))
        elif op[0] == 'r':
            _, x0, y0, x1, y1, al = op
            D.rectangle((int(x0 + ml), int(y0 + mt), int(x0 + ml) + max(0, round(x1 - x0) - 1), int(y0 + mt) + max(0, round(y1 - y0) - 1)), fill=al)
        else:
            st, x, y, d, i = op; x += ml; y += mt
            if st == 'sq': D.rectangle((x, y, x + d, y + d), fill=255)
            elif st == 'circ': D.ellipse((x, y, x + d, y + d), fill=255)
            else: D.ellipse((x, y, x + d, y + d), outline=255)
            gl.append(('•', x + d / 2, y + d / 2, i))
    xy = np.array([[g[1], g[2]] for g in gl], np.float32).reshape(-1, 2)
    a = np.asarray(M, np.float32)[..., None] * (1 / 255.)
    t = R.random()
    if t < .08: bg = np.array([R.randint(0, 70) for _ in range(3)]); fg = np.array([R.randint(200, 255)] * 3)
    else:
        b = 255 if t < .5 else R.randint(225, 255); bg = np.array([b] * 3)
        if R.random() < .15: bg = np.array([R.randint(205, 255) for _ in range(3)])
        d = R.choice([0, 0, 0, R.randint(0, 90)]); fg = np.array([d] * 3)
        if R.random() < .12: fg = np.array([R.randint(0, 130) for _ in range(3)]); fg[R.randrange(3)] = R.randint(0, 50)
    im = bg * (1 - a) + fg * a
    if R.random() < clean:
        im = Image.fromarray(im.clip(0, 255).astype(np.uint8))
    else:
        if R.random() < .2:   # faint gradient / contrast change
            im = im * (1 - R.uniform(0, .12) * np.linspace(0, 1, W)[None, :, None]) + R.uniform(0, 10)
        im = Image.fromarray(im.clip(0, 255).astype(np.uint8))
        if R.random() < .25:
            ang = R.uniform(-1, 1); im = im.rotate(ang, Image.BICUBIC, fillcolor=tuple(int(v) for v in bg))
            th = math.radians(ang); c, s = math.cos(th), math.sin(th); x, y = xy[:, 0] - W / 2, xy[:, 1] - H / 2
            xy = np.stack([c * x + s * y + W / 2, -s * x + c * y + H / 2], 1)
        if R.random() < .35 and not getattr(C, 'noscale', False):
            sc = R.uniform(.82, 1.2) if W * H < A * 784 * .9 else R.uniform(.82, 1)
            w2, h2 = max(8, round(W * sc)), max(8, round(H * sc)); im = im.resize((w2, h2), R.choice([Image.BILINEAR, Image.BICUBIC, Image.LANCZOS])); xy = xy * np.array([w2 / W, h2 / H]); W, H = w2, h2
        if R.random() < .35: im = im.filter(ImageFilter.GaussianBlur(R.uniform(.2, .8)))
        if R.random() < .35:
            z = np.asarray(im, np.float32); im = Image.fromarray((z + nR.normal(0, R.uniform(1, 9), z.shape[:2] + (1,)).astype(np.float32)).clip(0, 255).astype(np.uint8))
        if R.random() < .03 and t >= .08:
            g = np.asarray(im.convert('L')); g = ((g > R.uniform(.5, .62) * float(bg.mean())) * 255).astype(np.uint8); im = Image.fromarray(g).convert('RGB')
        if R.random() < .5:
            b = io.BytesIO(); im.save(b, 'JPEG', quality=R.randint(40, 95)); im = Image.open(b).convert('RGB')
    hb, wb = smart(H, W)
    if (wb, hb) != (W, H): im = im.resize((wb, hb), Image.BICUBIC)
    xy = xy * np.array([wb / W, hb / H])
    return im, [(g[0], x, y, g[3]) for g, (x, y) in zip(gl, xy)]

def sample(R, nR, T, tok, st, held=None, kind=None):
    """One training sample as a dict, within the stage limits st = dict(amin, amax, maxtok, kinds)."""
    while True:
        k = kind or R.choices(list(st['kinds']), list(st['kinds'].values()))[0]
        lo, hi = st['amin'], st['amax']
        if k == 'head': lo, hi = min(lo, 12), min(hi, 100)
        if k == 'table': lo = max(lo, 20); hi = max(hi, 30)
        A = math.exp(R.uniform(math.log(lo), math.log(hi)))
        if k in ('list', 'table', 'code') and R.random() < .5: A = min(hi, A * 2)
        C = Canvas(); ans = KINDS[k](C, R, T, A, held)
        if not ans or not C.ops: continue
        im, gl = render(C, R, nR, A)
        gw, gh = im.size[0] // 28, im.size[1] // 28
        if gw * gh > min(256, hi * 1.6): continue
        ids = tok.encode(ans)
        if len(ids) > st['maxtok']: continue
        pos = {g[3]: (g[1], g[2]) for g in gl if g[3] >= 0}
        def cell(p): return min(gh - 1, max(0, int(p[1] // 28))) * gw + min(gw - 1, max(0, int(p[0] // 28)))
        # byte offset -> char index
        b2c = []
        for ci, ch in enumerate(ans): b2c += [ci] * len(ch.encode('utf-8'))
        first, last = [], []; o = 0
        for t in ids:
            n = tok.nbytes(t); cs = [c for c in range(b2c[o], b2c[o + n - 1] + 1) if c in pos]; o += n
            first.append(cell(pos[cs[0]]) if cs else -1); last.append(cell(pos[cs[-1]]) if cs else -1)
        ap = np.zeros((gh * 2, gw * 2, PSLOT), np.uint8); ac = np.zeros((gh, gw, CSLOT), np.uint8)
        np_ = {}; nc_ = {}
        for c, x, y, i in sorted(gl, key=lambda g: (round(g[2] / 4), g[1])):
            px, py = int(x // 14), int(y // 14)
            if not (0 <= px < gw * 2 and 0 <= py < gh * 2) or c not in CID: continue
            kk = np_.get((py, px), 0)
            if kk < PSLOT: ap[py, px, kk] = CID[c]; np_[(py, px)] = kk + 1
            kk = nc_.get((py // 2, px // 2), 0)
            if kk < CSLOT: ac[py // 2, px // 2, kk] = CID[c]; nc_[(py // 2, px // 2)] = kk + 1
        z = np.asarray(im).reshape(gh, 2, 14, gw, 2, 14, 3).transpose(0, 3, 1, 4, 6, 2, 5).reshape(gh * gw * 4, 588)
        ap = ap.reshape(gh, 2, gw, 2, PSLOT).transpose(0, 2, 1, 3, 4).reshape(gh * gw * 4, PSLOT)
        return dict(px=np.ascontiguousarray(z), gh=gh, gw=gw, ids=np.array(ids + [tok.im_end], np.int16), first=np.array(first + [-1], np.int16), last=np.array(last + [-1], np.int16),
                    ap=ap, ac=ac.reshape(gh * gw, CSLOT), kind=k, text=ans)

FULL = dict(par=.55, head=.12, list=.13, table=.15, code=.05)
DEF = dict(amin=6, amax=40, maxtok=320, kinds=FULL)
def worker(wid, out=SHARDS, maxq=24, per=256):
    import tok as tokm
    os.makedirs(out, exist_ok=True); seed = int(time.time() * 1000) % 1000000007 * 7 + wid
    R = random.Random(seed); nR = np.random.default_rng(seed); T = Text(R); tk = tokm.Tok(ROOT + '/out/model'); n = 0
    while True:
        try: st = json.load(open(ROOT + '/work/stage.json'))
        except Exception: st = DEF
        while len(glob.glob(out + '/*.pkl')) >= maxq: time.sleep(1)
        ss = []
        for _ in range(per):
            try: ss.append(sample(R, nR, T, tk, st))
            except Exception as e: print('gen error', repr(e), flush=True)
        fn = f'{out}/{time.time():.3f}_{wid}'
        pickle.dump(ss, open(fn + '.tmp', 'wb'), protocol=4); os.rename(fn + '.tmp', fn + '.pkl'); n += 1
if __name__ == '__main__':
    if sys.argv[1] == 'worker': os.nice(int(sys.argv[3]) if len(sys.argv) > 3 else 5); worker(int(sys.argv[2]), maxq=int(sys.argv[4]) if len(sys.argv) > 4 else 24)
    if sys.argv[1] == 'demo':
        import tok as tokm
        R = random.Random(3); nR = np.random.default_rng(3); T = Text(R); tk = tokm.Tok(ROOT + '/out/model')
        st = dict(DEF, amin=20, amax=200); t0 = time.time(); ss = [sample(R, nR, T, tk, st) for _ in range(200)]
        print('ms/sample', (time.time() - t0) * 5, 'cells', np.mean([s['gh'] * s['gw'] for s in ss]), 'tok', np.mean([len(s['ids']) for s in ss]), 'chars', np.mean([len(s['text']) for s in ss]), 'max slot use', np.mean([(s['ac'][:, -1] > 0).mean() for s in ss]))
        S = Image.new('RGB', (1160, 1500), (128, 160, 128)); y = 4
        for s in ss[:40]:
            im = Image.fromarray(s['px'].reshape(s['gh'], s['gw'], 2, 2, 3, 14, 14).transpose(0, 2, 5, 1, 3, 6, 4).reshape(s['gh'] * 28, s['gw'] * 28, 3))
            if y + im.size[1] > 1500: break
            S.paste(im, (4, y)); y += im.size[1] + 6; print(repr(s['text'][:150]), s['first'][:10].tolist(), s['gh'], s['gw'])
        S.save(ROOT + '/work/demo.png')
