/* path.h - questions about names in the file system. */
#ifndef GALLEY_BASE_PATH_H
#define GALLEY_BASE_PATH_H

#include <stdbool.h>

/* A directory, or a link to one. */
bool path_is_dir(const char *path);

#endif
