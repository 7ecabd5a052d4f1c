/* help.c - what `galley help` says. */
#include <string.h>

#include "src/cli/cli.h"

static const char overview[] =
    "galley - documents to Markdown by a vision-language model that proof-reads drafts\n"
    "\n"
    "usage: galley COMMAND [options]\n"
    "\n"
    "  convert   PDF, PNG and JPEG files to Markdown, JSON, HTML or text\n"
    "  inspect   show what is in a model directory or on a document's pages\n"
    "  quantize  write a model anew as GGUF, in another type\n"
    "  doctor    check this machine: CPU, libraries, fonts, languages, model\n"
    "  help      this text, or the help of a command: galley help convert\n"
    "\n"
    "  galley --version\n"
    "\n"
    "examples:\n"
    "  galley convert report.pdf > report.md\n"
    "  galley convert scans/*.png -o out/\n"
    "  galley inspect report.pdf --regions regions.png\n";

static const char convert[] =
    "usage: galley convert INPUT... [options]\n"
    "\n"
    "Reads PDF, PNG and JPEG (by content; - is standard input) and writes what the model read.\n"
    "\n"
    "output\n"
    "  -o, --output FILE|DIR/|-  where to; default: - for one input, NAME.md beside each for "
    "several\n"
    "      --format FORMAT       md (default), json, html, text\n"
    "      --page-break          mark pages: <!-- page N -->\n"
    "      --furniture keep|drop running headers, footers and page numbers; default drop\n"
    "      --figures DIR         write figures as PNG files into DIR: figure-pN-K.png, with "
    "several\n"
    "                            inputs figure-I-pN-K.png for the I-th\n"
    "      --stats FILE          write counts and seconds as JSON (- is standard output)\n"
    "\n"
    "input\n"
    "      --pages LIST          such as 1-3,7 or 5-\n"
    "      --password WORD       of an encrypted PDF\n"
    "      --dpi N               resolution of PDF pages, and assumed of pictures; default 200\n"
    "      --page-seconds N      processor time galley-pdf may spend on a page; default 3\n"
    "\n"
    "reading\n"
    "      --model DIR           model directory; default: $GALLEY_MODEL, else the built-in model\n"
    "      --draft SOURCE        auto (default): the PDF's text layer if it can be believed, else "
    "OCR;\n"
    "                            text, ocr: only that; none: the model alone, token by token\n"
    "      --accept exact|TAU    exact: the output is byte for byte the model's own (--draft "
    "none);\n"
    "                            TAU (0 to 1): a drafted token stands when the model gives it at\n"
    "                            least TAU times the probability of its favourite.\n"
    "                            Default: the model card's rule for the draft's source, else "
    "exact\n"
    "      --ocr-lang LANGS      Tesseract languages, such as eng+kor; default eng\n"
    "      --min-pixels N        smallest crop shown to the model\n"
    "      --max-pixels N        largest crop shown to the model\n"
    "      --max-new-tokens N    most tokens per crop\n"
    "      --threads N           default: one per CPU\n"
    "\n"
    "  -q, --quiet               no progress, only errors\n"
    "  -v, --verbose             a line per page and event\n"
    "\n"
    "exit status: 0 all good; 1 internal error; 2 usage; 3 model missing or bad; 4 input "
    "unreadable or\n"
    "unsupported; 5 encrypted; 6 limit or memory; 7 some pages or files failed; 130 interrupted\n"
    "\n"
    "examples:\n"
    "  galley convert report.pdf -o report.md\n"
    "  galley convert scan.jpg --ocr-lang eng+kor --format json | jq .pages[0].status\n"
    "  galley convert report.pdf --pages 2-3 --accept exact --stats stats.json\n"
    "  galley convert inbox/*.pdf -o out/ --figures out/img\n";

static const char inspect[] =
    "usage: galley inspect FILE|DIR [options]\n"
    "\n"
    "A model directory or GGUF file: its configuration, metadata, tensors, memory and card.  A\n"
    "document: each page's regions in reading order with the light parser's drafts; no model is "
    "used.\n"
    "\n"
    "      --regions OUT.png     draw the regions on the page (several pages: OUT-pN.png)\n"
    "      --json                machine-readable\n"
    "      --pages LIST          such as 1-3,7\n"
    "      --password WORD       of an encrypted PDF\n"
    "      --draft auto|text|ocr where drafts come from\n"
    "      --ocr-lang LANGS      Tesseract languages; default eng\n"
    "      --dpi N               default 200\n"
    "      --page-seconds N      processor time galley-pdf may spend on a page; default 3\n"
    "\n"
    "examples:\n"
    "  galley inspect models/galley-tiny\n"
    "  galley inspect mmproj-model-f16.gguf --json | jq .gguf.keys\n"
    "  galley inspect report.pdf --pages 1 --regions page1.png\n";

static const char doctor[] =
    "usage: galley doctor [--model DIR] [--json]\n"
    "\n"
    "Checks what conversions need: CPU features, library versions, the galley-pdf helper, fonts,\n"
    "poppler-data, Tesseract languages, and that the model loads and reads.  Exit status 0 when "
    "nothing is\n"
    "missing, else 1 (3 when it is the model).\n";

static const char quantize[] =
    "usage: galley quantize IN OUT.gguf --type TYPE [options]\n"
    "\n"
    "Writes a model anew as GGUF.  IN is a Hugging Face directory (Qwen 2, 2-VL, 2.5-VL, 3, Llama "
    "with\n"
    "byte-level BPE) or a GGUF file.  A vision tower goes into a second file.\n"
    "\n"
    "      --type TYPE           f32 f16 bf16 q8_0 q6_k q5_k q5_1 q5_0 q4_k q4_1 q4_0 iq4_nl "
    "iq4_xs\n"
    "                            mxfp4 q3_k q2_k: every matrix, the output matrix at least q6_k;\n"
    "                            q5_k_m q4_k_m q4_k_s q3_k_l q3_k_m: the known mixes\n"
    "      --tensor PATTERN=TYPE for matrices whose GGUF name matches, such as "
    "'blk.*.ffn_down.*=q6_k';\n"
    "                            may be repeated, the last that matches counts\n"
    "      --imatrix FILE        importance matrix, GGUF or .dat\n"
    "      --mmproj FILE         where the vision tower goes; default mmproj-OUT beside OUT\n"
    "      --threads N           default: one per CPU\n"
    "      --json                the report as JSON\n"
    "  -q, --quiet               no progress\n"
    "\n"
    "Prints what became of each tensor: types, RMS error relative to the tensor's RMS, largest "
    "error.\n"
    "\n"
    "examples:\n"
    "  galley quantize Qwen2.5-VL-3B-Instruct qwen.gguf --type q4_k_m --tensor 'v.*=q8_0'\n"
    "  galley quantize model-f16.gguf model-q4_0.gguf --type q4_0 --imatrix imatrix.gguf\n";

const char *help_text(const char *command)
{
    static const struct {
        const char *name, *text;
    } texts[] = { { "", overview },
                  { "convert", convert },
                  { "inspect", inspect },
                  { "doctor", doctor },
                  { "quantize", quantize } };
    for (size_t i = 0; i < COUNT(texts); i++) {
        if (strcmp(command, texts[i].name) == 0) {
            return texts[i].text;
        }
    }
    return NULL;
}
