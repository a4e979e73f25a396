"""Holds src/client/api.h against the published header of PJRT's C interface: the size of each struct, the offset of each member, and the
place of each function in the table. Of extensions, too.

  pjrt_abi.py HEADERS    a folder that has xla/pjrt/c/pjrt_c_api.h, as the source distribution of pypjrt has it under vendor/

What the compiler knows of both headers' structs is read from its debugging information, by gdb.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def functions():
    return re.findall(r'X\((\w+), "(PJRT_\w+)"\)', (SOURCE / "client/api.h").read_text())


def layout(gdb_text):
    """Offsets and sizes of a struct's scalars, of unions the first way to see them, in order."""
    rows, skipped = [], 0
    for line in gdb_text.splitlines():
        found = re.match(r"/\*\s*(\d+)(?::\s*\d+)?\s*\|\s*(\d+)\s*\*/(.*)", line)
        if found and not re.search(r"(struct|union) .*\{|(struct|union) \{", found[3]):
            rows.append((int(found[1]), int(found[2])))
    total = re.search(r"total size(?: \(bytes\))?:\s*(\d+)", gdb_text[gdb_text.rfind("total size"):])
    return sorted(set(rows)), int(total[1]) if total else None


def ask(binary, types):
    commands = [x for t in types for x in ("-ex", f"echo @@{t}\\n", "-ex", f"ptype /o {t}")]
    out = subprocess.run(["gdb", "-batch", "-nx", *commands, binary], capture_output=True, text=True, check=True).stdout
    return {part.split("\n", 1)[0]: layout(part.split("\n", 1)[1]) for part in out.split("@@")[1:]}


NESTED = {16: [(0, 8), (8, 1)], 40: [(i, 8) for i in range(0, 40, 8)]}  # ax_pjrt_statistic, ax_pjrt_memory_use: gdb does not open them


def opened(rows):
    return [(at + inner, size) for at, whole in rows for inner, size in NESTED.get(whole, [(0, whole)])]


OTHERS = [  # structs that are no arguments
    ("PJRT_Extension_Base", "ax_pjrt_extension"), ("PJRT_NamedValue", "ax_pjrt_named"), ("PJRT_Program", "ax_pjrt_program"),
    ("PJRT_ExecuteOptions", "ax_pjrt_execute_options"), ("PJRT_Buffer_MemoryLayout", "ax_pjrt_memory_layout"),
    ("PJRT_ShapeSpec", "ax_pjrt_shape"), ("PJRT_Chunk", "ax_pjrt_chunk"), ("PJRT_LogicalDeviceIds", "ax_pjrt_logical_id"),
    ("PJRT_SendCallbackInfo", "ax_pjrt_send"), ("PJRT_RecvCallbackInfo", "ax_pjrt_receive"), ("PJRT_LoadOptions", "ax_pjrt_load_options"),
    ("PJRT_ProcessInfo", "ax_pjrt_process_info"), ("PJRT_Error_FunctionTable", "ax_pjrt_error_functions"),
    ("PJRT_Memory_FunctionTable", "ax_pjrt_memory_functions"), ("PJRT_Api", "ax_pjrt_api"),
    # of extensions
    ("PJRT_Shardings_Extension", "ax_pjrt_shardings"), ("PJRT_Shardings_PJRT_Executable_ParameterShardings_Args", "ax_pjrt_executable_shardings_args"),
    ("PJRT_Layouts_Extension", "ax_pjrt_layouts"), ("PJRT_Layouts_MemoryLayout_Destroy_Args", "ax_pjrt_layout_destroy_args"),
    ("PJRT_Layouts_MemoryLayout_Serialize_Args", "ax_pjrt_layout_serialize_args"),
    ("PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args", "ax_pjrt_layout_buffer_args"),
    ("PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args", "ax_pjrt_layout_default_args"),
    ("PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args", "ax_pjrt_layout_default_args"),
    ("PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args", "ax_pjrt_layout_executable_args"),
    ("PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args", "ax_pjrt_layout_executable_args"),
    ("PJRT_FFI_Extension", "ax_pjrt_ffi"), ("PJRT_FFI_Type_Info", "ax_pjrt_ffi_type_info"), ("PJRT_FFI_Type_Register_Args", "ax_pjrt_ffi_type_args"),
    ("PJRT_FFI_UserData_Add_Args", "ax_pjrt_ffi_user_data_args"), ("PJRT_FFI_Register_Handler_Args", "ax_pjrt_ffi_handler_args"),
    ("PJRT_Gpu_Custom_Call", "ax_pjrt_custom_calls"), ("PJRT_Gpu_Register_Custom_Call_Args", "ax_pjrt_custom_call_args"),
    ("PJRT_Profiler_Extension", "ax_pjrt_profilers"), ("PLUGIN_Profiler_Error_Message_Args", "ax_pjrt_profiler_error_args"),
    ("PLUGIN_Profiler_Create_Args", "ax_pjrt_profiler_create_args"), ("PLUGIN_Profiler_Start_Args", "ax_pjrt_profiler_args"),
    ("PLUGIN_Profiler_CollectData_Args", "ax_pjrt_profiler_data_args"),
]
HEADERS = ["", "_ffi_extension", "_gpu_extension", "_layouts_extension", "_profiler_extension", "_shardings_extension"]


def main(headers):
    pairs = [(f"{theirs}_Args", f"ax_pjrt_{ours}_args") for ours, theirs in functions()] + OTHERS
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "both.cc"
        uses = "".join(f"{t} their_{i};\n{o} our_{i};\n" for i, (t, o) in enumerate(pairs))
        order = "".join(
            f'static_assert(offsetof(PJRT_Api, {theirs}) == offsetof(ax_pjrt_api, {ours}), "{theirs}");\n' for ours, theirs in functions())
        theirs_included = "".join(f'#include "xla/pjrt/c/pjrt_c_api{h}.h"\n' for h in HEADERS)
        program.write_text(f'#include <cstddef>\n{theirs_included}#include "client/api.h"\n{uses}{order}int main() {{ return 0; }}\n')
        binary = Path(folder) / "both"
        subprocess.run(["g++", "-g", "-w", f"-I{headers}", f"-I{SOURCE}", program, "-o", binary], check=True)
        theirs, ours = ask(binary, [t for t, _ in pairs]), ask(binary, [o for _, o in pairs])
    wrong = [(t, o) for t, o in pairs if ours[o] != theirs[t] != (opened(ours[o][0]), ours[o][1]) or theirs[t][1] is None]
    for t, o in wrong:
        print(f"{t} {theirs[t][1]}: {theirs[t][0]}\n  {o} {ours[o][1]}: {ours[o][0]}")
    print(f"pjrt: {len(pairs)} structs, {len(functions())} functions, {len(wrong)} differ")
    return not wrong


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1]) else 1)
