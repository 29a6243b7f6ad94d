# Hydrascope's own sources are compiled with these; third-party code is not.
# Warnings are errors with the compiler that the tests run with, so that tools/run and tools/test share what they compile;
# another compiler may know warnings of its own.
set(_werror OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12
   AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(_werror ON)
endif()
option(HYDRASCOPE_WERROR "Treat warnings as errors" ${_werror})

add_library(hydrascope_warnings INTERFACE)
# From 13 on, GCC warns wrongly of references that functions return.
target_compile_options(hydrascope_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion>
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HYDRASCOPE_WERROR}>>:-Werror>)
