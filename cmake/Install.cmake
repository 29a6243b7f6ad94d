# cmake --install BUILD --prefix FOLDER: the program with its files, completions, manual page and desktop entry.
# LibTorch stays where it is; tools/package makes an archive that holds it, too.
include(GNUInstallDirs)
set(_share "${CMAKE_INSTALL_DATADIR}/hydrascope")
set_target_properties(hydrascope PROPERTIES
  INSTALL_RPATH "$ORIGIN/../lib/hydrascope" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS hydrascope RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET hydrascope_cuda)
  set_target_properties(hydrascope_cuda PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS hydrascope_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_BINDIR}") # found beside the program
endif()
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
