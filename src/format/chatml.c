/* chatml.c - does this tokenizer speak ChatML, and with the ids of config.json? */
#include "src/format/chatml.h"

enum galley_status chatml_check(const struct tokenizer *tok, const struct hf_config *cfg,
                                struct galley_err *err)
{
    const struct {
        const char *token;
        int32_t id; /* -1: any */
    } wanted[] = {
        { "<|im_start|>", -1 },
        { "<|im_end|>", -1 },
        { "<|vision_start|>", cfg->vision_start },
        { "<|vision_end|>", cfg->vision_end },
        { "<|image_pad|>", cfg->image_pad },
    };
    for (size_t i = 0; i < COUNT(wanted); i++) {
        const int32_t id = tokenizer_lookup(tok, wanted[i].token);
        if (id < 0) {
            return galley_err_set(err, GALLEY_EMODEL, "tokenizer.json has no token %s",
                                  wanted[i].token);
        }
        if (wanted[i].id >= 0 && id != wanted[i].id) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "tokenizer.json has %s as %d, config.json says %d",
                                  wanted[i].token, id, wanted[i].id);
        }
    }
    return GALLEY_OK;
}
