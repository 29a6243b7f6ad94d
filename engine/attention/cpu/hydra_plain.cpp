#define HYDRASCOPE_CPU plain
#include "engine/attention/cpu/hydra_loops.h"
