find_library(CMARK_GFM cmark-gfm REQUIRED)
find_library(CMARK_GFM_EXT cmark-gfm-extensions REQUIRED)
galley_module(document LAYER 6
    SOURCES src/document/assemble.c src/document/document.c src/document/html_table.c
            src/document/pages.c src/document/plan.c src/document/produce.c src/document/render.c
            src/document/restyle.c src/document/script.c src/document/source.c src/document/trust.c
    DEPS base format layout engine
    LIBS ${CMARK_GFM_EXT} ${CMARK_GFM})
