/* versions.h - which libraries read our files. */
#ifndef GALLEY_FORMAT_VERSIONS_H
#define GALLEY_FORMAT_VERSIONS_H

#include "src/base/buf.h"

/* "libjpeg-turbo 2.1.5, libpng 1.6.39, ...": of the libraries that are loaded, except that
 * libjpeg-turbo tells only which headers we were built with. */
void versions_add(struct buf *out);

#endif
