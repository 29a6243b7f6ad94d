#if defined(__x86_64__)
  #define HYDRASCOPE_CPU avx512
  #include "engine/attention/cpu/hydra_loops.h"
#endif
