# The rooms of architecture.md as libraries.

# hydrascope_library(NAME SOURCES…): a static library.
function(hydrascope_library name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE hydrascope_warnings)
endfunction()

# hydrascope_fused_loops(TARGET OPTIONS…): compiles the CPU's fused loops once for each kind of processor and adds them
# to the target. Which of them runs is decided at run time.
function(hydrascope_fused_loops target)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/engine/*/*/cpu/*_loops.cpp")
  foreach(processor IN ITEMS plain avx2 avx512 avx512bf16 amx)
    set(options -Wno-psabi) # vectors are passed within inlined code only
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      if(processor STREQUAL "avx2")
        list(APPEND options -march=x86-64-v3)
      elseif(processor MATCHES "avx512|amx")
        list(APPEND options -march=x86-64-v4 -mprefer-vector-width=512)
      endif()
      if(processor MATCHES "bf16|amx")
        list(APPEND options -mavx512bf16)
      endif()
      if(processor STREQUAL "amx")
        list(APPEND options -mamx-tile -mamx-bf16)
      endif()
    endif()
    set(objects ${target}_${processor})
    add_library(${objects} OBJECT ${sources})
    target_compile_definitions(${objects} PRIVATE HYDRASCOPE_CPU=${processor})
    target_compile_options(${objects} PRIVATE ${options} ${ARGN})
    target_include_directories(${objects} PRIVATE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${objects} PRIVATE hydrascope_warnings)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()

# ---- Plain: no LibTorch, not even its headers -------------------------------------------------------------------------
set(_plain_sources ${HYDRASCOPE_PLAIN_SOURCES})
list(REMOVE_ITEM _plain_sources "${HYDRASCOPE_STB_IMAGE}")
hydrascope_units(HYDRASCOPE_PLAIN_UNITS plain ${_plain_sources})
list(APPEND HYDRASCOPE_PLAIN_UNITS "${HYDRASCOPE_STB_IMAGE}")
hydrascope_library(hydrascope_plain ${HYDRASCOPE_PLAIN_UNITS})
target_link_libraries(hydrascope_plain PUBLIC ${HYDRASCOPE_PLAIN_LIBRARIES})

# ---- Engine: LibTorch inside, plain C++ types outside ------------------------------------------------------------------
hydrascope_sources(_engine_sources engine)
list(FILTER _engine_sources EXCLUDE REGEX "/engine/(attention/linear/cuda/plugin\\.cpp$|figures/|models/tokenizer/)")
list(REMOVE_ITEM _engine_sources ${HYDRASCOPE_PLAIN_SOURCES})
list(FILTER _engine_sources EXCLUDE REGEX "/cpu/[a-z]+_loops\\.cpp$")
hydrascope_units(_engine_units engine ${_engine_sources})
hydrascope_library(hydrascope_engine ${_engine_units})
hydrascope_fused_loops(hydrascope_engine)
target_link_libraries(hydrascope_engine PUBLIC hydrascope_plain nlohmann_json::nlohmann_json fmt::fmt spdlog::spdlog)
# jemalloc takes the place of malloc in whatever is linked with it, LibTorch included (engine/base/process_memory.cpp).
target_link_libraries(hydrascope_engine PRIVATE torchw::cpu PkgConfig::jemalloc stb CURL::libcurl Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(hydrascope_engine PRIVATE AT_PER_OPERATOR_HEADERS)
target_include_directories(hydrascope_engine SYSTEM PRIVATE "${GLOO_INCLUDE}")
# Without it at::parallel_for does all on one thread, and says nothing.
if(HYDRASCOPE_OPENMP)
  target_compile_options(hydrascope_engine PRIVATE -fopenmp)
endif()

# ---- CUDA plug-in: loaded at run time, and only where a driver is ------------------------------------------------------
file(GLOB _cuda_sources CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/engine/attention/*/cuda/*.cu" "${CMAKE_SOURCE_DIR}/engine/attention/linear/cuda/plugin.cpp")
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
# The window system's headers define macros and types that no other file should see.
set(_display_sources)
foreach(_name draw_data egl_display glfw_display graphics picture_clipboard wayland_clipboard x11_clipboard x11_selection)
  list(APPEND _display_sources "${CMAKE_SOURCE_DIR}/app/ui/${_name}.cpp")
endforeach()
list(REMOVE_ITEM _app_sources ${_display_sources})
hydrascope_units(_app_units app ${_app_sources})
hydrascope_library(hydrascope_app ${_app_units} ${_display_sources})
target_link_libraries(hydrascope_app PUBLIC hydrascope_engine hydrascope_gui_headers CLI11::CLI11 PkgConfig::egl Threads::Threads)
target_link_libraries(hydrascope_app PRIVATE stb PkgConfig::xcb)
target_sources(hydrascope_app PRIVATE $<TARGET_OBJECTS:text_editor>)

add_executable(hydrascope app/main.cpp)
target_link_libraries(hydrascope PRIVATE hydrascope_app imgui hydrascope_warnings)
if(TARGET hydrascope_cuda)
  add_dependencies(hydrascope hydrascope_cuda)
endif()
