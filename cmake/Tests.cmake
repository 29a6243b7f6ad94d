# Tests, all of them run by ctest. A new test file is found by itself; a folder without one makes no target.
include(CTest)
if(NOT BUILD_TESTING)
  return()
endif()
# The tools in Python, with a program that prints given answers in place of hydrascope.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME tool_tests COMMAND "${Python3_EXECUTABLE}" -m unittest discover -b -s "${CMAKE_SOURCE_DIR}/tests/tools" -p "*_test.py")
  set_tests_properties(tool_tests PROPERTIES TIMEOUT 5400 # 20 set-ups that are killed among them
    ENVIRONMENT "HYDRASCOPE_BUILT=${CMAKE_BINARY_DIR}/hydrascope;HYDRASCOPE_DEPS=${HYDRASCOPE_DEPS}")
endif()

find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(STATUS "Tests: not built, GoogleTest was not found (tools/setup --tests installs it)")
  return()
endif()

# Paths reach the tests through one source file: in every compile command they would spoil the compiler cache.
set(_checkout "${CMAKE_SOURCE_DIR}/tests/support/checkout.cpp")
set_source_files_properties("${_checkout}" PROPERTIES COMPILE_DEFINITIONS
  "HYDRASCOPE_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\";HYDRASCOPE_DEPS_DIR=\"${HYDRASCOPE_DEPS}\";HYDRASCOPE_PROGRAM=\"${CMAKE_BINARY_DIR}/hydrascope\"")

# A model hub on the loopback, for those that fetch models.
set(_hub_server "${CMAKE_SOURCE_DIR}/tests/support/hub_server.cpp")

# An accelerator for tests.
set(_fake_device "${CMAKE_SOURCE_DIR}/tests/support/fake_device.cpp" "${CMAKE_SOURCE_DIR}/tests/support/fake_device_memory.cpp"
  "${CMAKE_SOURCE_DIR}/tests/support/fake_autocast.cpp")

# hydrascope_test(NAME FOLDER LIBRARIES…): one executable out of tests/FOLDER, linked with GoogleTest.
function(hydrascope_test name folder)
  hydrascope_sources(sources tests/${folder})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources} "${_checkout}")
  target_link_libraries(${name} PRIVATE ${ARGN} GTest::gmock GTest::gtest_main hydrascope_warnings)
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
endfunction()

# hydrascope_shards(NAME COUNT): registers the executable's tests as COUNT shards that may run side by side.
function(hydrascope_shards name count)
  if(NOT TARGET ${name})
    return()
  endif()
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    add_test(NAME ${name}_${index} COMMAND ${name})
    set_tests_properties(${name}_${index} PROPERTIES TIMEOUT 3600
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index};OMP_WAIT_POLICY=passive")
  endforeach()
endfunction()

hydrascope_test(engine_tests engine hydrascope_engine torchw::cpu stb)
if(TARGET engine_tests)
  target_sources(engine_tests PRIVATE "${_hub_server}" "${CMAKE_SOURCE_DIR}/tests/support/devices.cpp" ${_fake_device})
  target_compile_definitions(engine_tests PRIVATE AT_PER_OPERATOR_HEADERS)
endif()
hydrascope_shards(engine_tests 2)
# The same with models on the fake device, where requests that name no device run then; without the tests of kernels
# alone, which choose their devices themselves.
if(TARGET engine_tests)
  add_test(NAME engine_tests_on_fake_device COMMAND engine_tests
    "--gtest_filter=-Registry/*:*Loops.*:Cuda*:Properties.*:HydraCpu.*:LinearCpu.*:FakeDevice*")
  set_tests_properties(engine_tests_on_fake_device PROPERTIES TIMEOUT 3600 ENVIRONMENT "HYDRASCOPE_DEVICE=fake;OMP_WAIT_POLICY=passive")
endif()

# With an allocator of its own that fails where it is told to.
hydrascope_test(allocation_tests allocation hydrascope_engine torchw::cpu PkgConfig::jemalloc)
if(TARGET allocation_tests)
  target_compile_definitions(allocation_tests PRIVATE AT_PER_OPERATOR_HEADERS)
  set_target_properties(allocation_tests PROPERTIES ENABLE_EXPORTS ON) # it looks names of functions up
  add_test(NAME allocation_tests COMMAND allocation_tests)
  set_tests_properties(allocation_tests PROPERTIES TIMEOUT 1800 ENVIRONMENT "OMP_WAIT_POLICY=passive")
endif()

# One of the processes that tests/engine/training/process_group_test.cpp starts.
if(TARGET engine_tests)
  add_executable(process_group_member "${CMAKE_SOURCE_DIR}/tests/support/process_group_member.cpp" ${_fake_device})
  target_compile_definitions(process_group_member PRIVATE AT_PER_OPERATOR_HEADERS)
  target_include_directories(process_group_member PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(process_group_member PRIVATE hydrascope_engine torchw::cpu hydrascope_warnings)
  add_dependencies(engine_tests process_group_member)
endif()

# What needs no LibTorch once more, under AddressSanitizer and UndefinedBehaviorSanitizer: the plain sources with
# their tests, and those tests of engine_tests whose sources compile by themselves: the CPU's loops, the programs of
# the GPU's blocks, and what only counts.
pkg_check_modules(webpdemux REQUIRED IMPORTED_TARGET libwebpdemux)
hydrascope_test(plain_tests plain ${HYDRASCOPE_PLAIN_LIBRARIES} PkgConfig::webpdemux)
if(TARGET plain_tests)
  file(GLOB _loop_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/engine/attention/*/cpu/*.cpp" "${CMAKE_SOURCE_DIR}/engine/attention/simd/*.cpp")
  list(FILTER _loop_sources EXCLUDE REGEX "_loops\\.cpp$")
  target_sources(plain_tests PRIVATE ${HYDRASCOPE_PLAIN_UNITS} ${_loop_sources})
  foreach(_name IN ITEMS attention/causal_loops attention/cuda_linear attention/exponential_loops attention/linear_loops attention/product_loops
                         attention/softmax_cpu run/quantities/deletion
                         measure/pointing training/class_counts)
    target_sources(plain_tests PRIVATE "${CMAKE_SOURCE_DIR}/tests/engine/${_name}_test.cpp")
  endforeach()
  foreach(_source IN ITEMS tests/engine/attention/linear_definition engine/run/quantities/deletion
                           engine/measure/pointing engine/training/data/class_counts)
    target_sources(plain_tests PRIVATE "${CMAKE_SOURCE_DIR}/${_source}.cpp")
  endforeach()
  set(_sanitized -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(plain_tests PRIVATE ${_sanitized})
  hydrascope_fused_loops(plain_tests ${_sanitized})
  target_link_options(plain_tests PRIVATE -fsanitize=address,undefined)
  add_test(NAME plain_tests COMMAND plain_tests)
  # GCC 13 checks uses after return by default, in frames that it aligns too little for AVX-512 (GCC's bug 110027).
  set_tests_properties(plain_tests PROPERTIES ENVIRONMENT
    "ASAN_OPTIONS=detect_stack_use_after_return=0;LSAN_OPTIONS=suppressions='${CMAKE_SOURCE_DIR}/cmake/lsan.supp':print_suppressions=0")
endif()

# What crosses threads, under ThreadSanitizer: the worker with a runner that has no models, background jobs, a team of
# threads, a lockstep of two.
hydrascope_test(thread_tests threads Threads::Threads)
if(TARGET thread_tests)
  target_sources(thread_tests PRIVATE "${CMAKE_SOURCE_DIR}/engine/run/worker.cpp" "${CMAKE_SOURCE_DIR}/engine/base/error_message.cpp"
    "${CMAKE_SOURCE_DIR}/engine/base/thread_team.cpp" "${CMAKE_SOURCE_DIR}/engine/base/lockstep.cpp")
  target_compile_options(thread_tests PRIVATE -g1 -fsanitize=thread)
  target_link_options(thread_tests PRIVATE -fsanitize=thread)
  add_test(NAME thread_tests COMMAND thread_tests)
  set_tests_properties(thread_tests PROPERTIES TIMEOUT 900 ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1")
endif()

# The CUDA kernels on the CPU (tests/cuda_emulation), compiled as C++ against the emulation's headers, without LibTorch's
# libraries: with fibers under AddressSanitizer at all shapes, and with real threads under ThreadSanitizer at small ones.
set(_emulation "${CMAKE_SOURCE_DIR}/tests/cuda_emulation")
set(_emulated_kernels)
file(GLOB _kernels CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/engine/attention/*/cuda/*.cu")
foreach(_kernel IN LISTS _kernels)
  cmake_path(GET _kernel STEM _stem)
  set(_unit "${CMAKE_BINARY_DIR}/generated/units/tests_cuda_emulation_${_stem}.cpp")
  file(CONFIGURE OUTPUT "${_unit}" CONTENT "#include \"${_kernel}\" // NOLINT(bugprone-suspicious-include)\n" @ONLY)
  list(APPEND _emulated_kernels "${_unit}")
endforeach()
function(hydrascope_cuda_emulation name threads sanitizers)
  set(emulation "${_emulation}")
  set(sources "${emulation}/launch.cpp" "${emulation}/${threads}.cpp" "${emulation}/definition.cpp" "${emulation}/cases.cpp" ${_emulated_kernels})
  foreach(test IN LISTS ARGN)
    list(APPEND sources "${emulation}/${test}.cpp")
  endforeach()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${emulation}/include" "${CMAKE_SOURCE_DIR}")
  target_include_directories(${name} SYSTEM PRIVATE $<TARGET_PROPERTY:torchw::cpu,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_options(${name} PRIVATE -g1 -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(${name} PRIVATE -fsanitize=${sanitizers})
  target_link_libraries(${name} PRIVATE Threads::Threads GTest::gtest_main hydrascope_warnings)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 3600)
endfunction()
# The definition in double precision is no part of what is under test.
set_source_files_properties("${CMAKE_SOURCE_DIR}/tests/cuda_emulation/definition.cpp" PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
hydrascope_cuda_emulation(cuda_emulation_tests fibers address,alignment emulation_test parity_test small_test)
hydrascope_cuda_emulation(cuda_emulation_thread_tests threads thread small_test)
# GCC 13 checks uses after return by default. Each of the emulation's fibers would have frames of its own for that, which
# take ten times as long as what is tested.
set_tests_properties(cuda_emulation_tests PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=0")
set_tests_properties(cuda_emulation_thread_tests PROPERTIES ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1")

# What the compiled kernels are predicted to do, against docs/measurements/cuda-static.md. Skipped without nvcc.
add_test(NAME cuda_static COMMAND "${CMAKE_SOURCE_DIR}/tools/cuda-static" --check)
set_tests_properties(cuda_static PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 ENVIRONMENT "HYDRASCOPE_DEPS=${HYDRASCOPE_DEPS}")

# The plug-in itself on emulated devices, called with LibTorch's tensors.
hydrascope_test(cuda_plugin_tests cuda_plugin hydrascope_engine torchw::cpu)
if(TARGET cuda_plugin_tests)
  target_sources(cuda_plugin_tests PRIVATE "${CMAKE_SOURCE_DIR}/engine/attention/linear/cuda/plugin.cpp" ${_emulated_kernels}
    "${_emulation}/launch.cpp" "${_emulation}/fibers.cpp" "${CMAKE_SOURCE_DIR}/tests/engine/attention/inputs.cpp")
  target_include_directories(cuda_plugin_tests BEFORE PRIVATE "${_emulation}/include")
  target_compile_definitions(cuda_plugin_tests PRIVATE AT_PER_OPERATOR_HEADERS)
  add_test(NAME cuda_plugin_tests COMMAND cuda_plugin_tests)
  set_tests_properties(cuda_plugin_tests PROPERTIES ENVIRONMENT "OMP_WAIT_POLICY=passive")
endif()

# Whole models through these kernels: the fake device's attention is that of the plug-in on emulated devices.
hydrascope_test(fused_models_tests fused_models hydrascope_engine torchw::cpu)
if(TARGET fused_models_tests)
  target_sources(fused_models_tests PRIVATE "${CMAKE_SOURCE_DIR}/engine/attention/linear/cuda/plugin.cpp" ${_emulated_kernels}
    "${_emulation}/launch.cpp" "${_emulation}/fibers.cpp" "${CMAKE_SOURCE_DIR}/tests/engine/attention/inputs.cpp"
    "${CMAKE_SOURCE_DIR}/tests/cuda_plugin/cuda_device.cpp" ${_fake_device})
  target_include_directories(fused_models_tests BEFORE PRIVATE "${_emulation}/include")
  target_compile_definitions(fused_models_tests PRIVATE AT_PER_OPERATOR_HEADERS)
  add_test(NAME fused_models_tests COMMAND fused_models_tests)
  set_tests_properties(fused_models_tests PROPERTIES ENVIRONMENT "OMP_WAIT_POLICY=passive")
endif()

# The application's state: document, actions, settings, sessions. Needs no display.
hydrascope_test(app_tests app hydrascope_app)
if(TARGET app_tests)
  add_test(NAME app_tests COMMAND app_tests)
  set_tests_properties(app_tests PROPERTIES TIMEOUT 900 ENVIRONMENT "OMP_WAIT_POLICY=passive"
    ENVIRONMENT_MODIFICATION "DISPLAY=unset:;WAYLAND_DISPLAY=unset:")
endif()

# Runs the built program as a user would.
if(TARGET hydrascope)
  hydrascope_test(command_tests commands hydrascope_plain nlohmann_json::nlohmann_json fmt::fmt)
  if(TARGET command_tests)
    target_sources(command_tests PRIVATE "${_hub_server}")
    # The whole program once more, with an accelerator for tests linked in: --device fake.
    add_executable(hydrascope_on_fake_device "${CMAKE_SOURCE_DIR}/app/main.cpp" ${_fake_device}
      "${CMAKE_SOURCE_DIR}/tests/support/fake_device_report.cpp" "${CMAKE_SOURCE_DIR}/tests/support/fake_device_broken.cpp")
    target_compile_definitions(hydrascope_on_fake_device PRIVATE AT_PER_OPERATOR_HEADERS)
    target_link_libraries(hydrascope_on_fake_device PRIVATE hydrascope_app imgui torchw::cpu hydrascope_warnings)
    add_dependencies(command_tests hydrascope hydrascope_on_fake_device)
  endif()
  hydrascope_shards(command_tests 2)
endif()

# Kills, full disks and read-only ones, a few for everything that writes; tools/interrupt alone is the long run.
if(TARGET hydrascope AND Python3_FOUND)
  # Saves sessions as the window does, for tools/interrupt.
  add_executable(session_saver "${CMAKE_SOURCE_DIR}/tests/support/session_saver.cpp")
  target_include_directories(session_saver PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(session_saver PRIVATE hydrascope_app imgui hydrascope_warnings)
  add_test(NAME interruptions COMMAND "${CMAKE_SOURCE_DIR}/tools/interrupt" --times 3 --ways kill,step,full,read-only figure-svg
    figure-npy export-folder screenshot sessions download features distil recall from-scratch convert-vit convert-smollm2)
  set_tests_properties(interruptions PROPERTIES TIMEOUT 2700 RUN_SERIAL ON ENVIRONMENT "HYDRASCOPE_PROGRAM=$<TARGET_FILE:hydrascope>")
endif()

# What runs by itself on the first machine with a GPU, at its smallest sizes.
if(TARGET hydrascope_on_fake_device AND TARGET engine_tests)
  add_test(NAME on_gpu COMMAND "${CMAKE_SOURCE_DIR}/tools/on-gpu" --quick --device fake --program $<TARGET_FILE:hydrascope_on_fake_device>
    --tests $<TARGET_FILE:engine_tests> --write "${CMAKE_BINARY_DIR}/on-fake-device.md")
  set_tests_properties(on_gpu PROPERTIES TIMEOUT 2700 ENVIRONMENT "HYDRASCOPE_DEPS=${HYDRASCOPE_DEPS}")
endif()

# Micro-benchmarks of the CPU's loops: built with the tests, so that they keep compiling, and run by hand.
find_package(benchmark QUIET)
if(benchmark_FOUND)
  hydrascope_sources(_benchmark_sources tests/benchmarks engine/attention/simd engine/attention/softmax/cpu engine/attention/hydra/cpu engine/attention/linear/cpu)
  list(FILTER _benchmark_sources EXCLUDE REGEX "_loops\\.cpp$")
  add_executable(cpu_loops ${_benchmark_sources} "${CMAKE_SOURCE_DIR}/tests/benchmarks/cpu_loops.cpp")
  hydrascope_fused_loops(cpu_loops)
  target_include_directories(cpu_loops PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(cpu_loops PRIVATE benchmark::benchmark PkgConfig::jemalloc hydrascope_warnings)
endif()

# Drives the window with Dear ImGui Test Engine: on a virtual X display, with EGL and no display at all, and, for what
# depends on the window system, on a Wayland display, also on one of two pixels per coordinate.
hydrascope_sources(_window_sources tests/window)
if(_window_sources)
  hydrascope_units(_window_units tests ${_window_sources})
  add_executable(window_tests ${_window_units} "${_checkout}" "${_hub_server}" ${_fake_device})
  target_compile_definitions(window_tests PRIVATE AT_PER_OPERATOR_HEADERS)
  target_link_libraries(window_tests PRIVATE hydrascope_app imgui_tested torchw::cpu hydrascope_warnings)
  find_program(XVFB_RUN xvfb-run)
  if(XVFB_RUN)
    add_test(NAME window_tests_xvfb COMMAND ${XVFB_RUN} -a -s "-noreset -screen 0 1600x1000x24" $<TARGET_FILE:window_tests>)
  endif()
  add_test(NAME window_tests_egl COMMAND window_tests)
  set_tests_properties(window_tests_egl PROPERTIES ENVIRONMENT_MODIFICATION "DISPLAY=unset:;WAYLAND_DISPLAY=unset:")
  find_program(WESTON weston)
  if(XVFB_RUN AND WESTON)
    set(_under_weston "${CMAKE_SOURCE_DIR}/tests/window/under_weston" $<TARGET_FILE:window_tests>)
    add_test(NAME window_tests_wayland COMMAND ${_under_weston} display,clipboard,frames,layout,shell)
    add_test(NAME window_tests_wayland_scaled COMMAND ${CMAKE_COMMAND} -E env UNDER_WESTON_SCALE=2 ${_under_weston} display)
    add_test(NAME doctor_wayland COMMAND "${CMAKE_SOURCE_DIR}/tests/window/under_weston" $<TARGET_FILE:hydrascope> doctor)
    set_tests_properties(doctor_wayland PROPERTIES PASS_REGULAR_EXPRESSION "Wayland under-weston\nok +clipboard")
  endif()
  foreach(_name window_tests_xvfb window_tests_egl window_tests_wayland window_tests_wayland_scaled doctor_wayland)
    if(TEST ${_name})
      set_tests_properties(${_name} PROPERTIES TIMEOUT 2700 RUN_SERIAL ON ENVIRONMENT "OMP_WAIT_POLICY=passive")
    endif()
  endforeach()
endif()
