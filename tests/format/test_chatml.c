/* test_chatml.c - tokenizer and configuration must be of one model. */
#include "src/base/mem.h"
#include "src/format/chatml.h"
#include "tests/t.h"

#define MODEL "models/galley-tiny"

static struct tokenizer *tok;
static struct hf_config cfg;

static void expect(struct hf_config c, const char *part)
{
    struct galley_err err = { 0 };
    T_EQ(chatml_check(tok, &c, &err), GALLEY_EMODEL);
    if (!strstr(err.msg, part)) {
        T_FAIL("\"%s\" does not say \"%s\"", err.msg, part);
    }
}

static void one_models_files_agree(void)
{
    T_EQ(chatml_check(tok, &cfg, NULL), GALLEY_OK);
}

static void other_ids_are_named(void)
{
    struct hf_config c = cfg;
    c.image_pad = 5;
    expect(c, "<|image_pad|> as 2046, config.json says 5");
    c = cfg;
    c.vision_start = 2044;
    expect(c, "<|vision_start|> as 2043, config.json says 2044");
}

static void a_tokenizer_of_another_family_is_refused(void)
{
    struct tokenizer *other;
    struct galley_err err = { 0 };
    T_EQ(tokenizer_open(&other, "tests/golden/tokenizer/gpt2.json", &err), GALLEY_OK);
    T_EQ(chatml_check(other, &cfg, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "no token"));
    tokenizer_close(other);
}

static const struct t_case cases[] = {
    { "one_models_files_agree", one_models_files_agree },
    { "other_ids_are_named", other_ids_are_named },
    { "a_tokenizer_of_another_family_is_refused", a_tokenizer_of_another_family_is_refused },
};

int main(int argc, char **argv)
{
    if (setjmp(t_jump)) {
        return 1;
    }
    T_EQ(hf_config_read(&cfg, MODEL, NULL), GALLEY_OK);
    T_EQ(tokenizer_open(&tok, MODEL "/tokenizer.json", NULL), GALLEY_OK);
    const int rc = t_main(argc, argv, cases, COUNT(cases));
    tokenizer_close(tok);
    return rc;
}
