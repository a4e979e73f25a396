# What src/client and src/pjrt have of protobuf-c: its archive, so that neither the library nor the plugin needs another file, and the
# messages of src/client/messages.proto.
pkg_check_modules(protobuf_c REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C NAMES protoc-c REQUIRED)
find_library(PROTOBUF_C_ARCHIVE NAMES libprotobuf-c.a protobuf-c REQUIRED)
set(client_proto ${PROJECT_BINARY_DIR}/generated/client)
file(MAKE_DIRECTORY ${client_proto})
add_custom_command(OUTPUT ${client_proto}/messages.pb-c.c ${client_proto}/messages.pb-c.h DEPENDS src/client/messages.proto VERBATIM
                   COMMAND ${PROTOC_C} --c_out=${client_proto} --proto_path=${PROJECT_SOURCE_DIR}/src/client messages.proto)
set_source_files_properties(${client_proto}/messages.pb-c.c PROPERTIES COMPILE_OPTIONS "-w")
file(GLOB client_sources CONFIGURE_DEPENDS src/client/*.c)
set_source_files_properties(${client_sources} PROPERTIES COMPILE_OPTIONS "-I${PROJECT_BINARY_DIR}/generated")
list(APPEND sources ${client_proto}/messages.pb-c.c)
