#pragma once
// Every formula; formulas.def lists them.

#include "lib/ir/formula_erf.h"
#include "lib/ir/formula_log.h"
