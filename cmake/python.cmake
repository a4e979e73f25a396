# python/jax_plugins/axle, JAX's way to the plugin, as it is found in the build folder: PYTHONPATH=build/python. `make wheel` packs it.
set(python_folder ${PROJECT_BINARY_DIR}/python/jax_plugins/axle)
file(GLOB python_sources CONFIGURE_DEPENDS python/jax_plugins/axle/*.py)
file(CONFIGURE OUTPUT ${python_folder}/version.py CONTENT "__version__ = \"${PROJECT_VERSION}\"\n" @ONLY)
set(python_files "")
foreach(source ${python_sources})
  cmake_path(GET source FILENAME name)
  add_custom_command(OUTPUT ${python_folder}/${name} DEPENDS ${source} VERBATIM
                     COMMAND ${CMAKE_COMMAND} -E copy ${source} ${python_folder}/${name})
  list(APPEND python_files ${python_folder}/${name})
endforeach()
add_custom_command(OUTPUT ${python_folder}/libaxle_pjrt.so VERBATIM
                   COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:axle_pjrt> ${python_folder}/libaxle_pjrt.so)
add_custom_command(OUTPUT ${python_folder}/axle VERBATIM
                   COMMAND ${CMAKE_COMMAND} -E create_symlink ${PROJECT_BINARY_DIR}/axle ${python_folder}/axle)
add_custom_target(python_package ALL DEPENDS ${python_files} ${python_folder}/libaxle_pjrt.so ${python_folder}/axle)

# What the wheel says of itself (cmake/wheel).
configure_file(python/METADATA.in generated/wheel/METADATA @ONLY)
