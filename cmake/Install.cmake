# cmake --install BUILD --prefix FOLDER: the program with its files, completions, manual page and desktop entry.
# LibTorch stays where it is, and the installed program finds it there; tools/package makes an archive that holds it,
# too. --component program installs the program alone.
include(GNUInstallDirs)
set(_share "${CMAKE_INSTALL_DATADIR}/hydrascope")
# INSTALL_RPATH_USE_LINK_PATH leaves out folders below the source tree, such as .deps.
set(_libraries "$ORIGIN/../lib/hydrascope" ${HYDRASCOPE_TORCH_FOLDERS})
foreach(_target hydrascope hydrascope_cuda) # the plug-in is found beside the program
  if(TARGET ${_target})
    set_target_properties(${_target} PROPERTIES INSTALL_RPATH "${_libraries}" INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${_target} DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
  endif()
endforeach()
install(DIRECTORY assets shaders DESTINATION "${_share}")
install(DIRECTORY "${HYDRASCOPE_DEPS}/models" "${HYDRASCOPE_DEPS}/examples" DESTINATION "${_share}")
install(FILES LICENSE THIRD_PARTY.md README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES cmake/hydrascope.desktop DESTINATION "${CMAKE_INSTALL_DATADIR}/applications")

# What the built program prints of its own options.
set(_made "${CMAKE_BINARY_DIR}/generated/shell")
install(CODE "
  file(MAKE_DIRECTORY \"${_made}\")
  function(make file)
    execute_process(COMMAND \"$<TARGET_FILE:hydrascope>\" \${ARGN}
      OUTPUT_FILE \"${_made}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endfunction()
  make(hydrascope completion bash)
  make(_hydrascope completion zsh)
  make(hydrascope.fish completion fish)
  make(hydrascope.1 manual)")
install(FILES "${_made}/hydrascope" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES "${_made}/_hydrascope" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${_made}/hydrascope.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
install(FILES "${_made}/hydrascope.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
