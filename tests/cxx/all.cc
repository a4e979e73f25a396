/* All tests with exceptions as one file: compiled, without a word, as other versions of C++ and with other settings. */
#include "bodies.cc"
#include "functions.cc"
#include "functions_made.cc"
#include "handles.cc"
#include "kernels.cc"
#include "macros.cc"
#include "values.cc"
