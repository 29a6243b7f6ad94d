# LibTorch as imported targets, with no CUDA toolkit needed to configure, compile or link:
#   torchw::cpu   c10 and torch_cpu, what the engine uses
#   torchw::cuda  the CUDA half, for the plug-in; exists only where its files are
# Taken from the user's own LibTorch where Torch_DIR (CMake variable or environment) names one, else from what
# tools/setup fetched. HYDRASCOPE_TORCH_FOLDERS: where the libraries of these targets lie. HYDRASCOPE_OPENMP: whether
# the compiler's OpenMP works with it. find_package(Torch) is not used for a LibTorch built with CUDA: it stops without a
# toolkit.

if(NOT Torch_DIR AND DEFINED ENV{Torch_DIR})
  set(Torch_DIR "$ENV{Torch_DIR}" CACHE PATH "Folder of the user's own TorchConfig.cmake")
endif()
if(Torch_DIR)
  get_filename_component(_torch "${Torch_DIR}/../../.." ABSOLUTE)
else()
  set(_torch "${HYDRASCOPE_DEPS}/torch/torch")
endif()

# LibTorch's constrained templates have the names that GCC gives them, and Clang gave them before 18.
set(_names_of_templates
  "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,18>>:-fclang-abi-compat=17>")

if(NOT EXISTS "${_torch}/lib/libtorch_cpu.so")
  if(NOT Torch_DIR)
    message(FATAL_ERROR "No LibTorch in ${HYDRASCOPE_DEPS}: run tools/setup, or name your own with -DTorch_DIR=…/share/cmake/Torch")
  endif()
  # An unusual layout, such as a distribution's package: let its own configuration say where things are.
  find_package(Torch REQUIRED)
  add_library(torchw::cpu INTERFACE IMPORTED GLOBAL)
  find_package(OpenMP REQUIRED)
  set(HYDRASCOPE_OPENMP ON)
  set_target_properties(torchw::cpu PROPERTIES
    INTERFACE_LINK_LIBRARIES "torch;OpenMP::OpenMP_CXX" INTERFACE_COMPILE_OPTIONS "${_names_of_templates}")
  message(STATUS "LibTorch: ${Torch_VERSION} through find_package in ${Torch_DIR}")
  return()
endif()

# LibTorch's include folder holds another version of fmt, which must not hide the one that is linked.
find_path(_fmt_include fmt/format.h PATHS /usr/include /usr/local/include NO_DEFAULT_PATH REQUIRED NO_CACHE)
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/generated/first")
file(CREATE_LINK "${_fmt_include}/fmt" "${CMAKE_BINARY_DIR}/generated/first/fmt" SYMBOLIC)

set(HYDRASCOPE_TORCH_FOLDERS "${_torch}/lib")
add_library(torchw::c10 SHARED IMPORTED GLOBAL)
set_target_properties(torchw::c10 PROPERTIES
  IMPORTED_LOCATION "${_torch}/lib/libc10.so"
  INTERFACE_INCLUDE_DIRECTORIES
    "${CMAKE_BINARY_DIR}/generated/first;${_torch}/include;${_torch}/include/torch/csrc/api/include"
  INTERFACE_COMPILE_OPTIONS "${_names_of_templates}")
# at::parallel_for is inline: what it compiles to and LibTorch have to share one OpenMP library. With GCC that is
# LibTorch's own. Clang compiles to calls of libomp, which exports libgomp's functions, too; as programs link it directly,
# LibTorch's calls go to it as well.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  file(GLOB _openmp "${_torch}/lib/libgomp*.so*")
  set(HYDRASCOPE_OPENMP ON)
else()
  find_package(OpenMP QUIET COMPONENTS CXX)
  set(_openmp ${OpenMP_CXX_LIBRARIES})
  set(HYDRASCOPE_OPENMP ${OpenMP_CXX_FOUND})
  if(NOT HYDRASCOPE_OPENMP)
    message(WARNING "No OpenMP for this compiler (Debian: libomp-VERSION-dev): kernels run on one thread")
  endif()
endif()
add_library(torchw::cpu SHARED IMPORTED GLOBAL)
set_target_properties(torchw::cpu PROPERTIES
  IMPORTED_LOCATION "${_torch}/lib/libtorch_cpu.so"
  INTERFACE_LINK_LIBRARIES "torchw::c10;${_openmp}")

# The CUDA run-time library lies beside a wheel (nvidia/…) or inside a LibTorch archive (lib/libcudart-….so).
file(GLOB _cudart "${_torch}/../nvidia/*/lib/libcudart.so.*" "${_torch}/lib/libcudart*.so*")
if(EXISTS "${_torch}/lib/libtorch_cuda.so" AND _cudart)
  list(GET _cudart 0 _cudart)
  cmake_path(GET _cudart PARENT_PATH _cudart_folder)
  list(APPEND HYDRASCOPE_TORCH_FOLDERS "${_cudart_folder}")
  add_library(torchw::c10_cuda SHARED IMPORTED GLOBAL)
  set_target_properties(torchw::c10_cuda PROPERTIES
    IMPORTED_LOCATION "${_torch}/lib/libc10_cuda.so"
    INTERFACE_LINK_LIBRARIES "torchw::cpu;${_cudart}")
  # Loading libtorch_cuda registers the CUDA back end: --as-needed must not drop it.
  add_library(torchw::cuda INTERFACE IMPORTED GLOBAL)
  set_target_properties(torchw::cuda PROPERTIES INTERFACE_LINK_LIBRARIES
    "torchw::c10_cuda;-Wl,--push-state,--no-as-needed,\"${_torch}/lib/libtorch_cuda.so\",--pop-state") # CMake quotes no flags
endif()
message(STATUS "LibTorch: ${_torch}")
