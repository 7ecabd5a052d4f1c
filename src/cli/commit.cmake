# commit.cmake - writes which state of the source is being built, for the files galley bench writes:
#     cmake -DSOURCE=DIR -DOUT=FILE.c -P commit.cmake
# Run by every build, so that a commit between two builds shows; the file is only touched when it
# changes, so that then one file is compiled and one program linked.
set(commit unknown) # no repository, or no git
if(EXISTS ${SOURCE}/.git) # its own: an archive may lie inside somebody else's
    execute_process(COMMAND git --no-optional-locks -C ${SOURCE} rev-parse --short=10 HEAD
                    RESULT_VARIABLE failed OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(failed EQUAL 0)
        set(commit ${head})
        execute_process(COMMAND git --no-optional-locks -C ${SOURCE} diff --quiet HEAD --
                        RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
        if(NOT differs EQUAL 0)
            string(APPEND commit -dirty)
        endif()
    endif()
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#include "src/cli/bench_report.h"

const char bench_commit[] = "@commit@";
]])
