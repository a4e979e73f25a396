# A shim (src/processes/mpi/shim.c) for each library of MPI that is here: libaxle_mpi_NAME.so, which the library opens when it is asked
# for processes (src/processes/load.h). Nothing else is linked with MPI. NAME is mpich or openmpi with the library's version, or abi.
#
#   pkg-config mpich, ompi-c    what Debian and others install
#   AXLE_MPI                    prefixes, each with include/mpi.h and lib/libmpi.so: -DAXLE_MPI="/opt/mpich;/opt/openmpi"
#
# mpi_names has the shims' names, mpi_NAME_run the launcher that goes with each.
set(AXLE_MPI "" CACHE STRING "Prefixes of libraries of MPI beside those that pkg-config finds")
set(mpi_names "")

# TARGET: what gives the headers' folder and the library.
function(axle_mpi_shim name target run)
  if(TARGET axle_mpi_${name})
    message(STATUS "MPI: a second ${name} is left out")
    return()
  endif()
  add_library(axle_mpi_${name} MODULE src/processes/mpi/shim.c)
  target_include_directories(axle_mpi_${name} PRIVATE src)
  target_link_libraries(axle_mpi_${name} PRIVATE ${target})
  target_link_options(axle_mpi_${name} PRIVATE LINKER:--as-needed) # pkg-config names what static libraries would need
  set_target_properties(axle_mpi_${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS axle_mpi_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
  set(mpi_names ${mpi_names} ${name} PARENT_SCOPE)
  set(mpi_${name}_target ${target} PARENT_SCOPE)
  set(mpi_${name}_run ${run} PARENT_SCOPE)
endfunction()

# From pkg-config. The launcher's plain name may be another library's.
macro(axle_mpi_package family package suffix)
  pkg_check_modules(${family} QUIET IMPORTED_TARGET ${package})
  if(${family}_FOUND)
    find_program(${family}_run NAMES mpirun.${suffix} mpiexec.${suffix})
    find_program(${family}_run NAMES mpirun mpiexec HINTS ${${family}_PREFIX}/bin NO_DEFAULT_PATH)
    string(REGEX MATCH "^[0-9]+" major "${${family}_VERSION}")
    axle_mpi_shim(${family}${major} PkgConfig::${family} "${${family}_run}")
  endif()
endmacro()

function(axle_mpi_imported name prefix library)
  add_library(mpi_${name} SHARED IMPORTED)
  set_target_properties(mpi_${name} PROPERTIES IMPORTED_LOCATION ${library} INTERFACE_INCLUDE_DIRECTORIES ${prefix}/include)
  target_link_directories(mpi_${name} INTERFACE ${prefix}/lib) # libmpi.so may be a script that names another file
endfunction()

# The family and version that a header says it is of: mpich5, openmpi5.
function(axle_mpi_name header out)
  file(STRINGS ${header} lines REGEX "define (MPICH_VERSION|OMPI_MAJOR_VERSION) ")
  string(REGEX REPLACE ".*MPICH_VERSION *\"([0-9]+).*" "mpich\\1" name "${lines}")
  string(REGEX REPLACE ".*OMPI_MAJOR_VERSION *([0-9]+).*" "openmpi\\1" name "${name}")
  if(NOT name MATCHES "^(mpich|openmpi)[0-9]+$")
    message(FATAL_ERROR "AXLE_MPI: ${header} is neither MPICH's nor Open MPI's")
  endif()
  set(${out} ${name} PARENT_SCOPE)
endfunction()

if(NOT AXLE_SANITIZE)
  axle_mpi_package(mpich mpich mpich)
  axle_mpi_package(openmpi ompi-c openmpi)
  foreach(prefix ${AXLE_MPI})
    axle_mpi_name(${prefix}/include/mpi.h name)
    axle_mpi_imported(${name} ${prefix} ${prefix}/lib/libmpi.so)
    axle_mpi_shim(${name} mpi_${name} ${prefix}/bin/mpirun)
    if(EXISTS ${prefix}/include/mpi_abi.h AND EXISTS ${prefix}/lib/libmpi_abi.so AND NOT TARGET axle_mpi_abi)
      axle_mpi_imported(abi ${prefix} ${prefix}/lib/libmpi_abi.so)
      target_compile_definitions(mpi_abi INTERFACE MPI_ABI)
      axle_mpi_shim(abi mpi_abi ${prefix}/bin/mpirun)
    endif()
  endforeach()
endif()

list(JOIN mpi_names " " mpi_list)
if(mpi_list)
  string(APPEND mpi_list " ")
endif()
set_source_files_properties(src/processes/load.c PROPERTIES COMPILE_DEFINITIONS "AX_MPI_SHIMS=\"${mpi_list}\"")
message(STATUS "MPI: ${mpi_names}")
