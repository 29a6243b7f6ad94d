# Dear ImGui (docking), GLFW, and a test build with Dear ImGui Test Engine, from the unpacked imgui-bundle source
# distribution, by an own list of files and without a patch.
#   hydrascope_gui_headers  include folders of all of them; what the app is compiled against
#   text_editor             the editor of source texts, an object library
#   imgui                   Dear ImGui for the program
#   imgui_tested            Dear ImGui with the test engine's hooks and the test engine; for window_tests only
# The hooks change none of Dear ImGui's types, so the app is compiled once and linked with either.

set(_bundle "${HYDRASCOPE_DEPS}/imgui-bundle/external")
set(_imgui "${_bundle}/imgui/imgui")
set(_engine "${_bundle}/imgui_test_engine/imgui_test_engine/imgui_test_engine")
if(NOT EXISTS "${_imgui}/imgui.h" OR NOT EXISTS "${_bundle}/ImGuiColorTextEdit")
  message(FATAL_ERROR "No Dear ImGui in ${HYDRASCOPE_DEPS}: run tools/setup")
endif()

foreach(_off DOCS TESTS EXAMPLES)
  set(GLFW_BUILD_${_off} OFF CACHE BOOL "" FORCE)
endforeach()
set(GLFW_INSTALL OFF CACHE BOOL "" FORCE)
set(GLFW_BUILD_X11 ON CACHE BOOL "" FORCE) # which of the two is used is decided at run time; neither is linked
set(GLFW_BUILD_WAYLAND ON CACHE BOOL "" FORCE)
set(GLFW_LIBRARY_TYPE STATIC CACHE STRING "" FORCE)
add_subdirectory("${_bundle}/glfw/glfw" "${CMAKE_BINARY_DIR}/glfw" EXCLUDE_FROM_ALL SYSTEM)

# One OpenGL loader for every kind of context: glad, out of GLFW's own dependencies. glad_gl.c makes its functions.
file(WRITE "${CMAKE_BINARY_DIR}/generated/glad_gl.c.new" "#define GLAD_GL_IMPLEMENTATION\n#include <glad/gl.h>\n")
file(COPY_FILE "${CMAKE_BINARY_DIR}/generated/glad_gl.c.new" "${CMAKE_BINARY_DIR}/generated/glad_gl.c" ONLY_IF_DIFFERENT)
add_library(glad STATIC "${CMAKE_BINARY_DIR}/generated/glad_gl.c")
target_include_directories(glad SYSTEM PUBLIC "${_bundle}/glfw/glfw/deps")

add_library(hydrascope_gui_headers INTERFACE)
target_include_directories(hydrascope_gui_headers SYSTEM INTERFACE
  "${_imgui}" "${_imgui}/backends" "${_imgui}/misc/cpp"
  "${_bundle}/portable_file_dialogs/portable_file_dialogs" "${_bundle}/ImGuiColorTextEdit/ImGuiColorTextEdit")
target_link_libraries(hydrascope_gui_headers INTERFACE glfw glad ${CMAKE_DL_LIBS})

set_source_files_properties("${_imgui}/backends/imgui_impl_opengl3.cpp" PROPERTIES
  COMPILE_DEFINITIONS IMGUI_IMPL_OPENGL_LOADER_CUSTOM COMPILE_OPTIONS "-include;glad/gl.h")

add_library(text_editor OBJECT "${_bundle}/ImGuiColorTextEdit/ImGuiColorTextEdit/TextEditor.cpp")
target_link_libraries(text_editor PRIVATE hydrascope_gui_headers)

function(hydrascope_add_imgui name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL
    "${_imgui}/imgui.cpp" "${_imgui}/imgui_draw.cpp" "${_imgui}/imgui_tables.cpp" "${_imgui}/imgui_widgets.cpp"
    "${_imgui}/imgui_stacklayout.cpp" "${_imgui}/imgui_demo.cpp" "${_imgui}/misc/cpp/imgui_stdlib.cpp"
    "${_imgui}/backends/imgui_impl_glfw.cpp" "${_imgui}/backends/imgui_impl_opengl3.cpp")
  target_link_libraries(${name} PUBLIC hydrascope_gui_headers)
endfunction()

hydrascope_add_imgui(imgui)

find_package(Threads REQUIRED)
hydrascope_add_imgui(imgui_tested)
target_sources(imgui_tested PRIVATE
  "${_engine}/imgui_capture_tool.cpp" "${_engine}/imgui_te_context.cpp" "${_engine}/imgui_te_coroutine.cpp"
  "${_engine}/imgui_te_engine.cpp" "${_engine}/imgui_te_exporters.cpp" "${_engine}/imgui_te_perftool.cpp"
  "${_engine}/imgui_te_ui.cpp" "${_engine}/imgui_te_utils.cpp")
target_include_directories(imgui_tested SYSTEM PUBLIC "${_engine}" "${_engine}/..")
target_compile_definitions(imgui_tested PUBLIC IMGUI_ENABLE_TEST_ENGINE IMGUI_TEST_ENGINE_ENABLE_CAPTURE=1
  IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL=1 IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION=1)
target_link_libraries(imgui_tested PUBLIC Threads::Threads)
