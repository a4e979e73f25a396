# libaxle_fourier: the engine of Fourier transforms (src/fourier/engine.cc), C++ around the headers of ducc0, which libaxle opens when a
# program first has such a transform. Without those headers there is none, and transforms are made of products (src/fourier/products.c).
#
#   AXLE_DUCC    ducc0's folder, with src/ducc0/fft/fft.h; when it is empty, what cmake/fetch has put into fetched/
set(AXLE_DUCC "" CACHE PATH "ducc0's folder")
set(ducc ${AXLE_DUCC})
if(NOT ducc)
  file(STRINGS cmake/sources.txt ducc_wanted REGEX "^ducc0==")
  string(REGEX REPLACE "^ducc0==([^ ]+).*" "${PROJECT_SOURCE_DIR}/fetched/ducc0-\\1" ducc "${ducc_wanted}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/sources.txt)
elseif(NOT EXISTS ${ducc}/src/ducc0/fft/fft.h)
  message(FATAL_ERROR "AXLE_DUCC: ${ducc} has no src/ducc0/fft/fft.h")
endif()

set(fourier_library libaxle_fourier.so)
set_source_files_properties(src/fourier/engines.c PROPERTIES COMPILE_DEFINITIONS "AX_FOURIER_LIBRARY=\"${fourier_library}\"")
if(NOT EXISTS "${ducc}/src/ducc0/fft/fft.h")
  message(STATUS "Fourier transforms: by products of matrices, which take about three times as long (ducc0 is not there; cmake/fetch)")
  return()
endif()
message(STATUS "Fourier transforms: by ducc0 (${ducc})")

add_library(axle_fourier MODULE src/fourier/engine.cc ${ducc}/src/ducc0/infra/threading.cc)
# Without contraction to fused operations, which compilers do here and not there, lanes and single numbers have the same bits. It gained nothing.
target_compile_options(axle_fourier PRIVATE -std=c++17 -O3 -ffp-contract=off -fvisibility=hidden -fvisibility-inlines-hidden)
set_source_files_properties(${ducc}/src/ducc0/infra/threading.cc PROPERTIES COMPILE_OPTIONS -w)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(axle_fourier PRIVATE -mavx2 -mfma -mtune=haswell) # what src/fourier/engines.c asks the processor for
endif()
if(AXLE_SANITIZE)
  target_compile_options(axle_fourier PRIVATE -fno-sanitize=all -O1) # ducc0 is not ours to look into, or to wait for
endif()
target_compile_definitions(axle_fourier PRIVATE DUCC0_NO_LOWLEVEL_THREADING)
target_include_directories(axle_fourier PRIVATE src)
target_include_directories(axle_fourier SYSTEM PRIVATE ${ducc}/src)
if(CXX_LIBRARY)
  target_link_libraries(axle_fourier PRIVATE ${CXX_LIBRARY})
endif()
target_link_options(axle_fourier PRIVATE LINKER:--exclude-libs,ALL)
install(TARGETS axle_fourier LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Its licence asks that binaries bring it: it stands at the head of the header.
file(READ ${ducc}/src/ducc0/fft/fft.h ducc_head LIMIT 2400)
string(REGEX REPLACE "\n#ifndef.*" "\n" ducc_head "${ducc_head}")
file(WRITE ${PROJECT_BINARY_DIR}/generated/ducc0-licence.txt "${ducc_head}")
install(FILES ${PROJECT_BINARY_DIR}/generated/ducc0-licence.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})
