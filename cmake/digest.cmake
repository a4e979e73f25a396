# Writes OUTPUT: #define NAME "digest of FILES, names and contents". Left alone where it says so already.
set(all "")
foreach(file ${FILES})
  file(SHA256 ${file} digest)
  cmake_path(GET file FILENAME name)
  string(APPEND all "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define ${NAME} \"${digest}\"\n" @ONLY)
