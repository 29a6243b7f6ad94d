# Lists of sources. A new kernel, panel or command is a new file and is found by itself.

# hydrascope_sources(VARIABLE FOLDER…): every .cpp below the folders.
function(hydrascope_sources variable)
  set(all)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.cpp")
    list(APPEND all ${found})
  endforeach()
  set(${variable} "${all}" PARENT_SCOPE)
endfunction()

# hydrascope_units(VARIABLE LIBRARY SOURCES…): the translation units that are compiled, each of which includes up to
# HYDRASCOPE_UNIT_SOURCES files of one room (two folders deep): parsing headers costs more than the code behind them.
# Names in unnamed namespaces are therefore unique within a room. The units name files relative to the checkout, so
# that the compiler cache hits across clones.
set(HYDRASCOPE_UNIT_SOURCES 8 CACHE STRING "Source files of one room compiled as one; 1: each by itself")
function(hydrascope_units variable library)
  set(folders)
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}")
    string(REGEX MATCH "^[^/]+/[^/]+" folder "${source}")
    list(APPEND folders "${folder}")
    list(APPEND "sources_${folder}" "${source}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(units)
  foreach(folder IN LISTS folders)
    string(REPLACE "/" "_" name "${folder}")
    set(index 0)
    while(sources_${folder})
      set(content)
      foreach(_ RANGE 1 ${HYDRASCOPE_UNIT_SOURCES})
        if(sources_${folder})
          list(POP_FRONT sources_${folder} source)
          string(APPEND content "#include \"${source}\" // NOLINT(bugprone-suspicious-include)\n")
        endif()
      endforeach()
      set(unit "${CMAKE_BINARY_DIR}/generated/units/${library}_${name}_${index}.cpp")
      file(CONFIGURE OUTPUT "${unit}" CONTENT "${content}" @ONLY)
      list(APPEND units "${unit}")
      math(EXPR index "${index} + 1")
    endwhile()
  endforeach()
  set(${variable} "${units}" PARENT_SCOPE)
endfunction()

# What needs no LibTorch, not even its headers; but for jemalloc's part, which is of the engine.
hydrascope_sources(HYDRASCOPE_PLAIN_SOURCES engine/base engine/figures engine/models/tokenizer)
list(FILTER HYDRASCOPE_PLAIN_SOURCES EXCLUDE REGEX "/process_memory.cpp$")
# stb_image is compiled by itself, with zeros in what it does not initialise: where a PNG's or BMP's pixels lie beyond the
# palette, the stack's content would be shown.
set(HYDRASCOPE_STB_IMAGE "${CMAKE_SOURCE_DIR}/engine/base/stb_image.cpp")
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-ftrivial-auto-var-init=zero HYDRASCOPE_ZEROS)
set(HYDRASCOPE_STB_IMAGE_OPTIONS $<$<BOOL:${HYDRASCOPE_ZEROS}>:-ftrivial-auto-var-init=zero>)
set_source_files_properties("${HYDRASCOPE_STB_IMAGE}" PROPERTIES COMPILE_OPTIONS "${HYDRASCOPE_STB_IMAGE_OPTIONS}")
set(HYDRASCOPE_PLAIN_LIBRARIES nlohmann_json::nlohmann_json fmt::fmt stb PkgConfig::cairo PkgConfig::fontconfig PkgConfig::utf8proc PkgConfig::pcre2 PkgConfig::webp OpenSSL::Crypto)
