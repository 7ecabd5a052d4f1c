/* inspect_plan.h - what a model takes on this machine. */
#ifndef GALLEY_CLI_INSPECT_PLAN_H
#define GALLEY_CLI_INSPECT_PLAN_H

#include <stdbool.h>

#include "src/galley.h"

int inspect_plan(const struct galley_plan_request *r, bool json);

#endif
