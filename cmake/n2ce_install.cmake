# What "cmake --install" puts where: program, libraries, headers, pkg-config file, CMake package,
# manual pages and shell completion. Pages and completion are written by the program itself.
set_target_properties(n2ce_shared PROPERTIES EXPORT_NAME n2ce)
set_target_properties(n2ce_static PROPERTIES EXPORT_NAME static)
install(TARGETS n2ce RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(n2ce_has_mpi)
  install(TARGETS n2ce_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS n2ce_shared n2ce_static EXPORT n2ce_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/n2ce.h include/n2ce_engine.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_file(cmake/n2ce.pc.in n2ce.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/n2ce.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/n2ce)
install(EXPORT n2ce_targets NAMESPACE n2ce:: DESTINATION ${package_dir})
write_basic_package_version_file(n2ce-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/n2ce-config.cmake.in n2ce-config.cmake @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/n2ce-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/n2ce-config-version.cmake DESTINATION ${package_dir})

function(n2ce_generate output)
  add_custom_command(OUTPUT ${output} COMMAND n2ce ${ARGN} > ${output} DEPENDS n2ce VERBATIM)
endfunction()
# A page for every verb: which there are the program knows.
set(man_folder ${CMAKE_CURRENT_BINARY_DIR}/man)
add_custom_command(OUTPUT ${man_folder}/n2ce.1
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${man_folder}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${man_folder}
  COMMAND n2ce man --all ${man_folder} DEPENDS n2ce VERBATIM)
n2ce_generate(n2ce.bash completion bash)
n2ce_generate(_n2ce completion zsh)
add_custom_target(n2ce_pages ALL DEPENDS ${man_folder}/n2ce.1 n2ce.bash _n2ce)
install(DIRECTORY ${man_folder}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/n2ce.bash RENAME n2ce
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_n2ce
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
