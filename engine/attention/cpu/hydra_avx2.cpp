#if defined(__x86_64__)
  #define HYDRASCOPE_CPU avx2
  #include "engine/attention/cpu/hydra_loops.h"
#endif
