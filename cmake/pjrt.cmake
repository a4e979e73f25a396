# libaxle_pjrt.so, the plugin that JAX loads: the library's objects, and src/pjrt. It has one symbol, GetPjrtApi.
pkg_check_modules(protobuf_c REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C NAMES protoc-c REQUIRED)
find_library(PROTOBUF_C_ARCHIVE NAMES libprotobuf-c.a protobuf-c REQUIRED) # the archive, so that the plugin is one file
set(pjrt_proto ${PROJECT_BINARY_DIR}/generated/pjrt)
file(MAKE_DIRECTORY ${pjrt_proto})
add_custom_command(OUTPUT ${pjrt_proto}/messages.pb-c.c ${pjrt_proto}/messages.pb-c.h DEPENDS src/pjrt/messages.proto VERBATIM
                   COMMAND ${PROTOC_C} --c_out=${pjrt_proto} --proto_path=${PROJECT_SOURCE_DIR}/src/pjrt messages.proto)
set_source_files_properties(${pjrt_proto}/messages.pb-c.c PROPERTIES COMPILE_OPTIONS "-w")

file(GLOB pjrt_sources CONFIGURE_DEPENDS src/pjrt/*.c)
list(FILTER pjrt_sources EXCLUDE REGEX "_test\\.c$")
set(pjrt_symbols ${PROJECT_BINARY_DIR}/generated/pjrt/symbols)
file(WRITE ${pjrt_symbols} "{ global: GetPjrtApi; local: *; };\n")
add_library(pjrt_objects OBJECT ${pjrt_sources} ${pjrt_proto}/messages.pb-c.c)
target_include_directories(pjrt_objects PRIVATE include src ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(pjrt_objects PRIVATE AXLE_NO_LINES AXLE_VERSION="${PROJECT_VERSION}")
add_library(axle_pjrt SHARED $<TARGET_OBJECTS:pjrt_objects> $<TARGET_OBJECTS:objects>)
target_link_options(axle_pjrt PRIVATE LINKER:--version-script=${pjrt_symbols})
target_link_libraries(axle_pjrt PRIVATE ${dependencies} ${PROTOBUF_C_ARCHIVE})
if(NOT AXLE_SANITIZE)
  target_link_options(axle_pjrt PRIVATE LINKER:-z,defs LINKER:--exclude-libs,ALL)
endif()
