/* Programs as StableHLO modules, which XLA and every PJRT plugin compile. */
#ifndef AXLE_STABLEHLO_H
#define AXLE_STABLEHLO_H

#include "axle/custom_call.h"
#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* Writes `program` as the text of a module: the program of one device, which every device runs.

   A per-device program (of ax_trace_on) is written as it is. A whole program is partitioned first (ax_program_partition):
   parameters and results are the device's shards of the program's, laid out as those of the compiled program. Collectives are
   between the mhlo.num_partitions devices of the mesh, by global ids. What ax_start begins is async_start and async_done where it
   is one exchange, of what was computed before; otherwise it stands where it begins. Functions kept as one (ax_closed_call) are
   private functions of the module, each once, and calls of them.
   Each parameter and result is marked as sharded by hand ("{manual}"), so that XLA's partitioner, which has to be on
   (use_spmd_partitioning, without Shardy), leaves the program alone.

   `*out` is owned by the caller: ax_string_free. Any thread.
   AX_ABSENT: a primitive that has no StableHLO; a shard_map inside a per-device program; what ax_program_partition says.
   AX_OUT_OF_MEMORY.

   Format: https://openxla.org/stablehlo/spec */
AX_MUST_USE ax_status ax_program_stablehlo(const ax_program *program, char **out);

/* Reads a module: the program of its function @main, or of its only function. It is text, as jax.jit(f).lower(x).as_text() has it, or
   MLIR's bytecode, versions 0 to 6: StableHLO as it is in memory, or an artifact of VHLO, from 0.9.0 on, as jax.export makes it
   (Exported.mlir_module_serialized), or a whole file of jax.export (Exported.serialize()): then the program takes the arguments of the
   function that was exported, and is the part for CPUs of a module for several platforms. The first bytes say which. `text` need not end in NUL; `source` is its name in messages, NULL:
   "module". Equations have the lines of the text, or those that the module's locations name ("train.py:31"), which messages and timelines
   show; those of bytecode without locations have the number of the operation, from 1 on.

   `*out` is owned by the caller: ax_program_release. Any thread.
   AX_PARSE_ERROR: text that is no module, with line and column, what was read and what was expected; bytes that are none, with the
   place of the byte. AX_INVALID_ARGUMENT: operations that are wrong in themselves; extents that nothing says. AX_ABSENT: operations and
   types that are not read yet, by name; files of jax.export for other platforms than cpu or with effects in an order; extents of which
   only a bound is known. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_program_from_stablehlo(const char *text, size_t bytes, const char *source, ax_program **out);

/* Modules of shape-polymorphic functions (jax.export with symbolic shapes) leave extents of their arguments open: tensor<?x4xf32>. All
   other shapes follow from these; each program has shapes that are known.
     "x.0"  extent 0 of the argument that the text calls %x; "0.0": of the first argument
     "b"    what jax.export calls b: every extent that is b, or computed from it (2*b + 1)
     "n"    an argument that is an integer, from which shapes are computed: it becomes a constant, and is no input of the program */
typedef struct ax_stablehlo_dim {
  const char *name;
  int64_t extent;
} ax_stablehlo_dim;
typedef struct ax_stablehlo_options {
  uint32_t dim_count;
  const ax_stablehlo_dim *dims;
  uint32_t type_count;  /* of the program's inputs, from the first one on; dims and types together must say all extents */
  const ax_type *types; /* of dtype AX_NO_DTYPE: not known */
  ax_custom_calls *custom_calls; /* functions that the module may call by name; NULL: none. The program holds what it calls */
} ax_stablehlo_options;

/* ax_program_from_stablehlo of a module that leaves extents open, bound as the options say. As JAX's and StableHLO's refinement of
   shapes. A function that is called with several shapes is read once for each list of them.
   AX_INVALID_ARGUMENT: also an extent that nothing says, by argument and dimension; two that do not agree; a name that the module has
   not; a shape that is computed from elements of inputs; an assertion of the module that does not hold, with its message. AX_ABSENT:
   also calls with so many shapes that reading them would take more than 100 times the module's operations. */
AX_MUST_USE ax_status ax_program_from_stablehlo_with(const char *text, size_t bytes, const char *source,
                                                     const ax_stablehlo_options *options, ax_program **out);

/* Writes a module, given as text, as bytecode or as jax.export wrote it, as text: in MLIR's generic form, attributes in the order of their names, those left out
   that stand for what they are by default. Modules that say the same have the same text. Locations are left out. As `stablehlo-translate
   --deserialize`, which prints short forms.

   `*out` is owned by the caller: ax_string_free. Any thread. As ax_program_from_stablehlo of modules that cannot be read, or whose operations
   are not such as StableHLO's specification wants them. AX_ABSENT also: attributes or types that share parts so often that their text is
   too long. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_stablehlo_text(const char *module, size_t bytes, const char *source, char **out);

/* Writes a module, given in any of these forms, as an artifact of VHLO `version`, "1.0.0" (NULL: that one), which XLA, PJRT plugins and
   jax.export of that version and later read. As `stablehlo.serialize_portable_artifact_str(text, version)`. Of locations the file and
   line are kept.
   "1.0.0+mixed": operations and attributes of chlo and sdy, which VHLO has not, are kept as they are beside those of VHLO, and a reader has
   to know these dialects, of its own version. As `stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=True)`.

   `*out` is owned by the caller: ax_string_free; it is `*out_bytes` long. Any thread. As ax_stablehlo_text of modules that cannot be
   read. AX_INVALID_ARGUMENT: a version that is none from 0.9.0 to 1.20.0; attributes that are missing. AX_ABSENT, by name: operations,
   attributes and types that the version has not, and without +mixed those of chlo and sdy; symbols inside of others (@a::@b), which VHLO
   has not. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_stablehlo_bytecode(const char *module, size_t bytes, const char *source, const char *version, char **out,
                                            size_t *out_bytes);

/* The same of a program's module, which ax_program_stablehlo prints; no text is made on the way. As `stablehlo.serialize_portable_artifact`.
   `*out` is owned by the caller: ax_string_free; it is `*out_bytes` long. Any thread. Errors as of ax_program_stablehlo; further
   AX_INVALID_ARGUMENT: a version that is none from 0.9.0 to 1.20.0; AX_ABSENT: operations of chlo, without +mixed behind the version. */
AX_MUST_USE ax_status ax_program_stablehlo_bytecode(const ax_program *program, const char *version, char **out, size_t *out_bytes);

/* How a program's module is written. */
typedef struct ax_stablehlo_writing {
  const char *version; /* of VHLO, as bytecode, "1.0.0" or "1.0.0+mixed"; NULL: as text */
  ax_args donate;      /* parameters of the module that are marked jax.buffer_donor: their memory may become results' */
  bool at_once;        /* without async_start, which XLA does not read: what ax_start begins is whole where it begins */
  const ax_mesh *mesh; /* not NULL: the whole program is written for a partitioner elsewhere, over this mesh, in the words of Shardy:
                          shard_maps as manual computations, ax_with_sharding as constraints, and each input and result lies as its spec
                          says. Borrowed, as the specs are */
  const ax_spec *in_specs, *out_specs; /* with `mesh`: one for each input, and for each result */
  const char *precision; /* what products and convolutions of f32 and c64 say of theirs: "HIGHEST", "HIGH" (of three products of bf16 or
                            more bits) or "DEFAULT" (some processors take 8 or 11 bits of each factor). NULL: nothing, which is the last */
} ax_stablehlo_writing;
/* Writes a program's module as ax_program_stablehlo and ax_program_stablehlo_bytecode do, in the given way. `*out` is owned by the caller:
   ax_string_free; it is `*out_bytes` long. Any thread. Errors as of these two; AX_INVALID_ARGUMENT also: a parameter that there is not; a
   precision that is none; a mesh for a program with axes, or without specs. AX_ABSENT also, of whole programs: a shard_map or constraint over another mesh, axes that
   are automatic in a shard_map, kernels, and as bytecode without +mixed all of Shardy. */
AX_MUST_USE ax_status ax_program_stablehlo_with(const ax_program *program, const ax_stablehlo_writing *writing, char **out,
                                                size_t *out_bytes);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_program_from_stablehlo(...) AX_LINED_STATUS(program_from_stablehlo, __VA_ARGS__)
#define ax_program_from_stablehlo_with(...) AX_LINED_STATUS(program_from_stablehlo_with, __VA_ARGS__)
#define ax_program_stablehlo(...) AX_LINED_STATUS(program_stablehlo, __VA_ARGS__)
#define ax_program_stablehlo_with(...) AX_LINED_STATUS(program_stablehlo_with, __VA_ARGS__)
#define ax_program_stablehlo_bytecode(...) AX_LINED_STATUS(program_stablehlo_bytecode, __VA_ARGS__)
#define ax_stablehlo_bytecode(...) AX_LINED_STATUS(stablehlo_bytecode, __VA_ARGS__)
#define ax_stablehlo_text(...) AX_LINED_STATUS(stablehlo_text, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
