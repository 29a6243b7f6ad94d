# The CUDA compiler, where there is one: on the machine, or fetched by tools/setup --cuda. Sets HYDRASCOPE_HAS_CUDA.
option(HYDRASCOPE_CUDA "Build the CUDA plug-in where a CUDA compiler is found" ON)
set(HYDRASCOPE_HAS_CUDA FALSE)
if(NOT HYDRASCOPE_CUDA)
  return()
endif()
if(NOT TARGET torchw::cuda)
  message(STATUS "CUDA plug-in: not built, this LibTorch has no CUDA half")
  return()
endif()

# One process cannot use two major versions of the CUDA runtime: LibTorch has loaded its own.
get_target_property(_c10_cuda torchw::c10_cuda IMPORTED_LOCATION)
file(STRINGS "${_c10_cuda}" _runtimes REGEX "^libcudart[^@]*\\.so\\.[0-9]+$")
string(REGEX MATCH "[0-9]+$" _torch_major "${_runtimes}")
# hydrascope_nvcc_fits(RESULT NVCC): sets the result to FALSE for one of another major version. Asked before the language
# is enabled: a build folder keeps its compiler. tools/build prints what it says.
function(hydrascope_nvcc_fits result nvcc)
  execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE printed ERROR_QUIET)
  if(_torch_major AND printed MATCHES "release ([0-9]+)" AND NOT CMAKE_MATCH_1 STREQUAL _torch_major)
    message(STATUS "CUDA plug-in: not used, ${nvcc} is of CUDA ${CMAKE_MATCH_1} and LibTorch of CUDA ${_torch_major}")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Through the environment rather than CMAKE_CUDA_COMPILER, so that check_language tries the compiler before it is used.
set(_fetched "${HYDRASCOPE_DEPS}/cuda/nvidia/cu13")
if(NOT CMAKE_CUDA_COMPILER)
  set(_nvcc "$ENV{CUDACXX}")
  if(_nvcc)
    set(_fits TRUE)
    hydrascope_nvcc_fits(_fits "${_nvcc}")
  else()
    find_program(_fitting_nvcc nvcc HINTS /usr/local/cuda/bin "${_fetched}/bin" VALIDATOR hydrascope_nvcc_fits NO_CACHE)
    set(_fits "${_fitting_nvcc}")
  endif()
  if(NOT _fits)
    message(STATUS "CUDA plug-in: not built, no CUDA compiler found that fits LibTorch (CUDACXX names one; without it and "
                   "with the pinned LibTorch, tools/setup --cuda fetches one)")
    return()
  endif()
  if(NOT _nvcc)
    set(ENV{CUDACXX} "${_fitting_nvcc}")
    if(_fitting_nvcc STREQUAL "${_fetched}/bin/nvcc")
      set(ENV{CUDAFLAGS} "-L\"${_fetched}/lib\" $ENV{CUDAFLAGS}") # its libraries lie in lib, where nvcc looks in lib64
    endif()
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90-real;100" CACHE STRING "GPU architectures of the CUDA plug-in")
endif()
set(CMAKE_CUDA_STANDARD 17) # CMake 3.25 knows no CUDA20
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # the one that LibTorch loads

include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE) # what was not there last time may be by now
endif()
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  string(REGEX MATCH "^[0-9]+" _nvcc_major "${CMAKE_CUDA_COMPILER_VERSION}")
  if(_torch_major AND NOT _torch_major STREQUAL _nvcc_major) # of an earlier LibTorch, or named by CMAKE_CUDA_COMPILER
    message(WARNING "CUDA plug-in: not built, nvcc is of CUDA ${_nvcc_major} and LibTorch of CUDA ${_torch_major}; an empty "
                    "build folder uses the nvcc that fits (tools/setup --cuda fetches it), or what CUDACXX names")
  else()
    set(HYDRASCOPE_HAS_CUDA TRUE)
    message(STATUS "CUDA plug-in: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
  endif()
else()
  message(STATUS "CUDA plug-in: not built, the CUDA compiler does not work")
endif()
