"""test_lint.py - every rule of lint.py catches a planted breach and lets the clean twin pass."""
import unittest

import lint


def said(check, *args):
    lint.breaches.clear()
    check(*args)
    return list(lint.breaches)


def words(path, text):
    return said(lint.check_words, path, text, lint.strip_comments(text))


class Rules(unittest.TestCase):
    def test_layers(self):
        up = '#include "src/engine/engine.h"\n'
        self.assertTrue(said(lint.check_includes, 'layout/pdf.c', up))
        self.assertFalse(said(lint.check_includes, 'src/document/plan.c', up))
        self.assertTrue(said(lint.check_includes, 'vision/vit.c', '#include "layout/region.h"\n'))
        self.assertTrue(said(lint.check_includes, 'vision/vit.c', '#include "vision/no_such.h"\n'))
        self.assertTrue(said(lint.check_includes, 'samples/page.c', '#include "src/galley_types.h"\n'))
        self.assertFalse(said(lint.check_includes, 'samples/page.c', '#include "ask.h"\n'))
        self.assertFalse(said(lint.check_includes, 'vision/vit.c', '#include "src/galley_status.h"\n'))

    def test_fences(self):
        self.assertTrue(said(lint.check_includes, 'layout/pdf.c', '#include <poppler.h>\n'))
        self.assertFalse(said(lint.check_includes, 'layout/galley_pdf/text.c', '#include <poppler.h>\n'))
        self.assertTrue(said(lint.check_includes, 'src/model/kv.c', '#include <immintrin.h>\n'))

    def test_lengths(self):
        self.assertTrue(said(lint.check_length, 'a.c', '\n' * 1201))
        self.assertFalse(said(lint.check_length, 'a.c', '\n' * 1200))
        self.assertTrue(said(lint.check_functions, 'a.c', 'int f(void)\n{\n' + 'x;\n' * 119 + '}\n'))
        self.assertFalse(said(lint.check_functions, 'a.c', 'int f(void)\n{\n' + 'x;\n' * 118 + '}\n'))

    def test_words(self):
        for text in ('strcpy(a, b);', 'x = system (c);', 'p = malloc(3);', 'exit(1);', 'getenv("X");', 'atoi(s);',
                     'printf("x");', 'typedef struct a a;', '/* TO' + 'DO later */', 's = "/home' + '/me";'):
            self.assertTrue(words('src/model/kv.c', text), text)
        for text in ('mem_free(p);', 'ops->free(d);', '/* never malloc(3) */', 's = "exit(1)";', 'snprintf(a, 3, "x");',
                     'typedef enum galley_status f(int a);', 'fprintf(f, "x");'):
            self.assertFalse(words('src/model/kv.c', text), text)
        self.assertFalse(words('src/cli/main.c', 'exit(1);'))
        self.assertTrue(words('src/cli/main.c', 'strcat(a, b);'))

    def test_space(self):
        for text in ('a \n', 'a', 'a\r\n', '\ta\n', 'x' * 101 + '\n'):
            self.assertTrue(said(lint.check_space, 'a.c', text), repr(text))
        self.assertFalse(said(lint.check_space, 'a.c', 'int a;\n' + 'x' * 100 + '\n'))

    def test_names(self):
        self.assertTrue(said(lint.check_names, ['src/a.c', 'layout/a.c']))
        self.assertFalse(said(lint.check_names, ['src/a.c', 'src/a.h', 'src/module.cmake', 'b/module.cmake']))

    def test_scripts(self):
        self.assertTrue(said(lint.check_script, 'a.py', 'def f(:\n'))
        self.assertFalse(said(lint.check_script, 'a.py', 'def f():\n    pass\n'))

    def test_programs(self):
        self.assertTrue(said(lint.check_headers, ['tests/lint/fixtures/leans.h']))
        self.assertFalse(said(lint.check_headers, ['tests/t.h']))


if __name__ == '__main__':
    unittest.main()
