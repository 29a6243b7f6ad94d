# The rooms of architecture.md as libraries. A new kernel, panel or command is a new file and is found by itself.

# hydrascope_sources(VARIABLE FOLDER…): every .cpp below the folders.
function(hydrascope_sources variable)
  set(all)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.cpp")
    list(APPEND all ${found})
  endforeach()
  set(${variable} "${all}" PARENT_SCOPE)
endfunction()

# hydrascope_library(NAME SOURCES…): a static library, or an interface one as long as it has no sources.
function(hydrascope_library name)
  if(ARGN)
    add_library(${name} STATIC ${ARGN})
    target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE hydrascope_warnings)
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE "${CMAKE_SOURCE_DIR}")
  endif()
endfunction()

# hydrascope_link(NAME PUBLIC|PRIVATE LIBRARIES…): the same for either kind.
function(hydrascope_link name kind)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(kind INTERFACE)
  endif()
  target_link_libraries(${name} ${kind} ${ARGN})
endfunction()

# ---- Plain: no LibTorch, not even its headers -------------------------------------------------------------------------
hydrascope_sources(HYDRASCOPE_PLAIN_SOURCES engine/figures engine/plain)
set(HYDRASCOPE_PLAIN_LIBRARIES nlohmann_json::nlohmann_json fmt::fmt stb PkgConfig::cairo PkgConfig::fontconfig PkgConfig::utf8proc OpenSSL::Crypto)
hydrascope_library(hydrascope_plain ${HYDRASCOPE_PLAIN_SOURCES})
hydrascope_link(hydrascope_plain PUBLIC ${HYDRASCOPE_PLAIN_LIBRARIES})

# ---- Engine: LibTorch inside, plain C++ types outside ------------------------------------------------------------------
hydrascope_sources(_engine_sources engine)
list(FILTER _engine_sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/engine/(figures|plain|attention/cuda)/")
hydrascope_library(hydrascope_engine ${_engine_sources})
hydrascope_link(hydrascope_engine PUBLIC hydrascope_plain nlohmann_json::nlohmann_json fmt::fmt spdlog::spdlog)
# jemalloc takes the place of malloc in whatever is linked with it, LibTorch included (engine/runtime/process_memory.cpp).
hydrascope_link(hydrascope_engine PRIVATE torchw::cpu PkgConfig::jemalloc stb CURL::libcurl Threads::Threads ${CMAKE_DL_LIBS})
if(_engine_sources)
  target_compile_definitions(hydrascope_engine PRIVATE AT_PER_OPERATOR_HEADERS)
  target_include_directories(hydrascope_engine SYSTEM PRIVATE "${GLOO_INCLUDE}")
  # Without it at::parallel_for does all on one thread, and says nothing.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(hydrascope_engine PRIVATE -fopenmp)
  endif()
endif()
# The fused loops, once for each kind of processor; which of them run is decided at run time.
foreach(_variant IN ITEMS plain avx2 avx512 avx512bf16)
  file(GLOB _variant_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/engine/attention/cpu/*_${_variant}.cpp")
  set(_options -Wno-psabi) # vectors are passed within inlined code only
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND _variant STREQUAL "avx2")
    list(APPEND _options -march=x86-64-v3)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND _variant STREQUAL "avx512")
    list(APPEND _options -march=x86-64-v4 -mprefer-vector-width=512)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND _variant STREQUAL "avx512bf16")
    list(APPEND _options -march=x86-64-v4 -mprefer-vector-width=512 -mavx512bf16)
  endif()
  set_source_files_properties(${_variant_sources} PROPERTIES COMPILE_OPTIONS "${_options}")
endforeach()

# ---- CUDA plug-in: loaded at run time, and only where a driver is ------------------------------------------------------
file(GLOB_RECURSE _cuda_sources CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/engine/attention/cuda/*.cu" "${CMAKE_SOURCE_DIR}/engine/attention/cuda/*.cpp")
if(HYDRASCOPE_HAS_CUDA AND _cuda_sources)
  add_library(hydrascope_cuda MODULE ${_cuda_sources})
  set_target_properties(hydrascope_cuda PROPERTIES PREFIX "")
  target_include_directories(hydrascope_cuda PRIVATE "${CMAKE_SOURCE_DIR}")
  target_include_directories(hydrascope_cuda SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_compile_definitions(hydrascope_cuda PRIVATE $<$<COMPILE_LANGUAGE:CXX>:AT_PER_OPERATOR_HEADERS>)
  target_link_libraries(hydrascope_cuda PRIVATE torchw::cuda hydrascope_warnings)
endif()

# ---- App ---------------------------------------------------------------------------------------------------------------
hydrascope_sources(_app_sources app)
list(REMOVE_ITEM _app_sources "${CMAKE_SOURCE_DIR}/app/main.cpp")
hydrascope_library(hydrascope_app ${_app_sources})
hydrascope_link(hydrascope_app PUBLIC hydrascope_engine hydrascope_gui_headers CLI11::CLI11 PkgConfig::egl Threads::Threads)
hydrascope_link(hydrascope_app PRIVATE stb PkgConfig::xcb)

if(EXISTS "${CMAKE_SOURCE_DIR}/app/main.cpp")
  add_executable(hydrascope app/main.cpp)
  target_link_libraries(hydrascope PRIVATE hydrascope_app implot imgui hydrascope_warnings)
  if(TARGET hydrascope_cuda)
    add_dependencies(hydrascope hydrascope_cuda)
  endif()
endif()
