#pragma once
// Every formula; formulas.def lists them.

#include "lib/ir/formula_activation.h"
#include "lib/ir/formula_erf.h"
#include "lib/ir/formula_narrow.h"
#include "lib/ir/formula_pow.h"
#include "lib/ir/formula_root.h"
#include "lib/ir/formula_trig.h"
