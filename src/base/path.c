/* path.c - see path.h. */
#include "src/base/path.h"

#include <sys/stat.h>

bool path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
