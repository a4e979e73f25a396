/* One mapping holds the whole object:

     | sections with code | stubs |   page   | other sections | slots |
     read and executed                       read

   A call of an outside function goes to its stub, which jumps to the address beside it. Code that loads the function's address
   from memory finds it in a slot. Both are within reach of the small code model's short relocations, wherever the function
   itself is. */
#include "jit/object/object.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { stub_bytes = 16, most_bytes = 1 << 30 };

typedef struct loader {
  const unsigned char *data;
  size_t bytes;
  const Elf64_Ehdr *header;
  const Elf64_Shdr *sections;
  const Elf64_Sym *symbols;
  uint32_t symbol_count;
  const char *strings; /* ends in NUL */
  size_t strings_bytes;
  ax_object_find *find;
  uint64_t *places;             /* by section: where it lies in the image; UINT64_MAX: it does not */
  uint32_t *outside;            /* by symbol: 1 + its number among those that are not in the object; 0: it is */
  uint32_t outside_count;
  unsigned char *image;
  uint64_t stubs, slots; /* where they begin; one of each for every symbol outside */
  size_t code_bytes, image_bytes;
} loader;

#if defined(__x86_64__)
enum { this_machine = EM_X86_64 };
#elif defined(__aarch64__) && defined(__AARCH64EL__)
enum { this_machine = EM_AARCH64 };
#else
enum { this_machine = EM_NONE };
#endif

bool ax_object_supported(void) { return this_machine != EM_NONE; }

static ax_status damaged(const char *what) { return ax_error(AX_INTERNAL, "compiled code is damaged: %s", what); }

/* --- What the file says of itself --- */

static bool within(size_t bytes, uint64_t offset, uint64_t count) { return offset <= bytes && count <= bytes - offset; }

static bool is_table(const loader *l, const Elf64_Shdr *section, size_t entry) {
  return section->sh_entsize == entry && section->sh_size % entry == 0 && section->sh_offset % 8 == 0 &&
         within(l->bytes, section->sh_offset, section->sh_size);
}

static ax_status read_header(loader *l) {
  const Elf64_Ehdr *h = l->header = (const Elf64_Ehdr *)l->data;
  if ((uintptr_t)l->data % 8 != 0 || l->bytes < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
    return damaged("it is no object file");
  if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL ||
      h->e_machine != this_machine)
    return damaged("it is an object file of another kind");
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shoff % 8 != 0 ||
      !within(l->bytes, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
    return damaged("its sections are out of bounds");
  l->sections = (const Elf64_Shdr *)(l->data + h->e_shoff);
  return AX_OK;
}

static ax_status read_symbols(loader *l) {
  for (uint32_t i = 0; i < l->header->e_shnum; i++) {
    const Elf64_Shdr *table = &l->sections[i];
    if (table->sh_type != SHT_SYMTAB) continue;
    if (l->symbols != NULL || !is_table(l, table, sizeof(Elf64_Sym)) || table->sh_link >= l->header->e_shnum ||
        table->sh_size > most_bytes)
      return damaged("its symbols are out of bounds");
    const Elf64_Shdr *strings = &l->sections[table->sh_link];
    if (strings->sh_size == 0 || !within(l->bytes, strings->sh_offset, strings->sh_size) ||
        l->data[strings->sh_offset + strings->sh_size - 1] != '\0')
      return damaged("its names are out of bounds");
    l->symbols = (const Elf64_Sym *)(l->data + table->sh_offset);
    l->symbol_count = (uint32_t)(table->sh_size / sizeof(Elf64_Sym));
    l->strings = (const char *)l->data + strings->sh_offset;
    l->strings_bytes = strings->sh_size;
  }
  return l->symbols != NULL ? AX_OK : damaged("it has no symbols");
}

static ax_status check_symbols(loader *l) {
  for (uint32_t i = 0; i < l->symbol_count; i++) {
    const Elf64_Sym *s = &l->symbols[i];
    if (s->st_name >= l->strings_bytes) return damaged("a name is out of bounds");
    if (s->st_shndx == SHN_UNDEF && l->strings[s->st_name] != '\0') l->outside[i] = ++l->outside_count;
    if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS) continue;
    if (s->st_shndx >= l->header->e_shnum || s->st_value > l->sections[s->st_shndx].sh_size)
      return damaged("a symbol is out of bounds");
  }
  return AX_OK;
}

/* --- Placing --- */

static bool is_loaded(const Elf64_Shdr *section) { return (section->sh_flags & SHF_ALLOC) != 0 && section->sh_size > 0; }

static ax_status check_section(const loader *l, const Elf64_Shdr *section) {
  if ((section->sh_flags & (SHF_WRITE | SHF_TLS)) != 0 || section->sh_type == SHT_NOBITS)
    return damaged("it holds what is written");
  if (!within(l->bytes, section->sh_offset, section->sh_size)) return damaged("a section is out of bounds");
  if ((section->sh_addralign & (section->sh_addralign - 1)) != 0 || section->sh_addralign > 4096)
    return damaged("a section's alignment");
  return AX_OK;
}

static ax_status place(loader *l, bool code, uint64_t *end) {
  for (uint32_t i = 0; i < l->header->e_shnum; i++) {
    const Elf64_Shdr *section = &l->sections[i];
    if (!is_loaded(section) || ((section->sh_flags & SHF_EXECINSTR) != 0) != code) continue;
    AX_TRY(check_section(l, section));
    const uint64_t align = section->sh_addralign < 16 ? 16 : section->sh_addralign;
    l->places[i] = (*end + align - 1) & ~(align - 1);
    *end = l->places[i] + section->sh_size;
    if (*end > most_bytes) return damaged("it is too large");
  }
  return AX_OK;
}

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

static ax_status place_all(loader *l) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t end = 0;
  for (uint32_t i = 0; i < l->header->e_shnum; i++) l->places[i] = UINT64_MAX;
  AX_TRY(place(l, true, &end));
  l->stubs = round_up(end, stub_bytes);
  end = l->code_bytes = round_up(l->stubs + (uint64_t)l->outside_count * stub_bytes, page);
  AX_TRY(place(l, false, &end));
  l->slots = round_up(end, sizeof(uint64_t));
  l->image_bytes = round_up(l->slots + (uint64_t)l->outside_count * sizeof(uint64_t), page);
  l->image = mmap(NULL, l->image_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (l->image == MAP_FAILED) {
    l->image = NULL;
    return ax_out_of_memory(l->image_bytes);
  }
  for (uint32_t i = 0; i < l->header->e_shnum; i++)
    if (l->places[i] != UINT64_MAX) memcpy(l->image + l->places[i], l->data + l->sections[i].sh_offset, l->sections[i].sh_size);
  return AX_OK;
}

/* --- Functions outside --- */

/* x86-64: jmp *0(%rip), and the address. aarch64: ldr x16, 8; br x16, and the address. */
static void write_stub(unsigned char *stub, uint64_t address) {
  static const unsigned char x86_64[8] = {0xff, 0x25, 2, 0, 0, 0, 0x90, 0x90};
  static const unsigned char aarch64[8] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
  memcpy(stub, this_machine == EM_X86_64 ? x86_64 : aarch64, 8);
  memcpy(stub + 8, &address, sizeof address);
}

static uint64_t stub_of(const loader *l, uint64_t symbol) { return l->stubs + (l->outside[symbol] - UINT64_C(1)) * stub_bytes; }
static uint64_t slot_of(const loader *l, uint64_t symbol) {
  return l->slots + (l->outside[symbol] - UINT64_C(1)) * sizeof(uint64_t);
}

static ax_status find_outside(const loader *l) {
  for (uint32_t i = 0; i < l->symbol_count; i++) {
    if (l->outside[i] == 0) continue;
    const char *name = l->strings + l->symbols[i].st_name;
    const ax_object_function found = l->find(name);
    if (found == NULL) return ax_error(AX_INTERNAL, "compiled code calls %s, which is nowhere", name);
    const uint64_t address = (uint64_t)(uintptr_t)found;
    write_stub(l->image + stub_of(l, i), address);
    memcpy(l->image + slot_of(l, i), &address, sizeof address);
  }
  return AX_OK;
}

/* --- Relocations --- */

/* In the names of the psABIs: S the symbol's address, A the addend, P the place that is written. */
typedef struct relocation {
  uint32_t type;
  uint64_t s, a, p;
  uint64_t slot;  /* G + GOT; 0: the symbol has none */
  bool outside;   /* S is a stub */
  unsigned char *at;
  uint64_t room;  /* bytes from `at` to the end of its section */
} relocation;

static bool fits(int64_t value, int bits) { return value >> (bits - 1) == 0 || value >> (bits - 1) == -1; }

static bool write_bytes(const relocation *r, uint64_t value, size_t bytes, bool fitting) {
  if (r->room < bytes || !fitting) return false;
  memcpy(r->at, &value, bytes); /* little-endian: the low ones */
  return true;
}

static bool relocate_x86_64(const relocation *r) {
  const uint64_t near = r->s + r->a - r->p, slot = r->slot + r->a - r->p;
  switch (r->type) {
    case R_X86_64_64: return !r->outside && write_bytes(r, r->s + r->a, 8, true);
    case R_X86_64_PC64: return !r->outside && write_bytes(r, near, 8, true);
    case R_X86_64_PC32: return !r->outside && write_bytes(r, near, 4, fits((int64_t)near, 32));
    case R_X86_64_PLT32: return write_bytes(r, near, 4, fits((int64_t)near, 32));
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return r->slot != 0 && write_bytes(r, slot, 4, fits((int64_t)slot, 32));
    default: return false;
  }
}

/* Puts `value` into the instruction at the place, where its `bits` bits begin at `at`. */
static bool write_field(const relocation *r, uint64_t value, int bits, int at) {
  uint32_t word;
  if (r->room < sizeof word) return false;
  memcpy(&word, r->at, sizeof word);
  const uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
  word = (word & ~(mask << at)) | ((uint32_t)value & mask) << at;
  memcpy(r->at, &word, sizeof word);
  return true;
}

static bool write_pages(const relocation *r, uint64_t target) {
  const int64_t pages = (int64_t)((target & ~UINT64_C(0xfff)) - (r->p & ~UINT64_C(0xfff))) >> 12;
  return fits(pages, 21) && write_field(r, (uint64_t)pages, 2, 29) && write_field(r, (uint64_t)pages >> 2, 19, 5);
}

/* The part of an address within its page, in units of 2^scale bytes. */
static bool write_low(const relocation *r, uint64_t target, int scale) {
  const uint64_t low = target & 0xfff;
  return low % (UINT64_C(1) << scale) == 0 && write_field(r, low >> scale, 12, 10);
}

static bool relocate_aarch64(const relocation *r) {
  const uint64_t target = r->s + r->a, near = target - r->p;
  switch (r->type) {
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return near % 4 == 0 && fits((int64_t)near, 28) && write_field(r, near >> 2, 26, 0);
    case R_AARCH64_ADR_GOT_PAGE: return r->slot != 0 && write_pages(r, r->slot + r->a);
    case R_AARCH64_LD64_GOT_LO12_NC: return r->slot != 0 && write_low(r, r->slot + r->a, 3);
    default: break;
  }
  if (r->outside) return false;
  switch (r->type) {
    case R_AARCH64_ABS64: return write_bytes(r, target, 8, true);
    case R_AARCH64_PREL64: return write_bytes(r, near, 8, true);
    case R_AARCH64_PREL32: return write_bytes(r, near, 4, fits((int64_t)near, 32));
    case R_AARCH64_ADR_PREL_PG_HI21: return write_pages(r, target);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return write_low(r, target, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return write_low(r, target, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return write_low(r, target, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return write_low(r, target, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return write_low(r, target, 4);
    default: return false;
  }
}

static ax_status relocate(const loader *l, uint32_t section, const Elf64_Rela *rela) {
  const uint64_t symbol = ELF64_R_SYM(rela->r_info), base = (uint64_t)(uintptr_t)l->image, size = l->sections[section].sh_size;
  relocation r = {.type = (uint32_t)ELF64_R_TYPE(rela->r_info), .a = (uint64_t)rela->r_addend};
  if (symbol >= l->symbol_count || rela->r_offset > size) return damaged("a relocation is out of bounds");
  const Elf64_Sym *s = &l->symbols[symbol];
  r.outside = l->outside[symbol] != 0;
  if (r.outside) {
    r.s = base + stub_of(l, symbol);
    r.slot = base + slot_of(l, symbol);
  } else if (s->st_shndx == SHN_UNDEF || s->st_shndx >= l->header->e_shnum || l->places[s->st_shndx] == UINT64_MAX) {
    return damaged("a relocation refers to nothing");
  } else {
    r.s = base + l->places[s->st_shndx] + s->st_value;
  }
  r.at = l->image + l->places[section] + rela->r_offset;
  r.p = (uint64_t)(uintptr_t)r.at;
  r.room = size - rela->r_offset;
  if (this_machine == EM_X86_64 ? relocate_x86_64(&r) : relocate_aarch64(&r)) return AX_OK;
  return ax_error(AX_INTERNAL, "compiled code has a relocation of kind %u that cannot be made", (unsigned)r.type);
}

static ax_status relocate_all(const loader *l) {
  for (uint32_t i = 0; i < l->header->e_shnum; i++) {
    const Elf64_Shdr *table = &l->sections[i];
    if (table->sh_type != SHT_RELA && table->sh_type != SHT_REL) continue;
    if (table->sh_info >= l->header->e_shnum || l->places[table->sh_info] == UINT64_MAX) continue;
    if (table->sh_type == SHT_REL || !is_table(l, table, sizeof(Elf64_Rela))) return damaged("its relocations are out of bounds");
    const Elf64_Rela *all = (const Elf64_Rela *)(l->data + table->sh_offset);
    for (uint64_t k = 0; k < table->sh_size / sizeof *all; k++) AX_TRY(relocate(l, table->sh_info, &all[k]));
  }
  return AX_OK;
}

/* --- The functions it was loaded for --- */

/* The number after the prefix; `count` where the name is another. */
static uint32_t number_of(const char *name, const char *prefix, uint32_t count) {
  const size_t length = strlen(prefix);
  uint64_t number = 0;
  if (strncmp(name, prefix, length) != 0 || name[length] == '\0') return count;
  for (const char *c = name + length; *c != '\0'; c++) {
    if (*c < '0' || *c > '9' || number >= count) return count;
    number = 10 * number + (uint64_t)(*c - '0');
  }
  return number < count ? (uint32_t)number : count;
}

static ax_status find_functions(const loader *l, const char *prefix, uint32_t count, ax_object_function *functions) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) functions[i] = NULL;
  for (uint32_t i = 0; i < l->symbol_count; i++) {
    const Elf64_Sym *s = &l->symbols[i];
    const uint32_t number = number_of(l->strings + s->st_name, prefix, count);
    if (number == count || s->st_shndx == SHN_UNDEF || s->st_shndx >= l->header->e_shnum || l->places[s->st_shndx] >= l->code_bytes)
      continue;
    if (functions[number] == NULL) found++;
    functions[number] = (ax_object_function)(uintptr_t)(l->image + l->places[s->st_shndx] + s->st_value);
  }
  return found == count ? AX_OK : damaged("a function is missing");
}

/* --- All of it --- */

static ax_status protect(const loader *l) {
  __builtin___clear_cache((char *)l->image, (char *)l->image + l->code_bytes);
  if (mprotect(l->image, l->code_bytes, PROT_READ | PROT_EXEC) != 0 ||
      mprotect(l->image + l->code_bytes, l->image_bytes - l->code_bytes, PROT_READ) != 0)
    return ax_error(AX_INTERNAL, "compiled code cannot be made executable: %s", strerror(errno));
  return AX_OK;
}

static ax_status load(loader *l, const char *prefix, uint32_t count, ax_object_function *functions) {
  AX_TRY(read_header(l));
  AX_TRY(read_symbols(l));
  l->places = ax_calloc(l->header->e_shnum, sizeof l->places[0]);
  l->outside = ax_calloc(l->symbol_count, sizeof l->outside[0]);
  if (l->places == NULL || l->outside == NULL) return ax_out_of_memory(l->symbol_count * sizeof l->outside[0]);
  AX_TRY(check_symbols(l));
  AX_TRY(place_all(l));
  AX_TRY(find_outside(l));
  AX_TRY(relocate_all(l));
  AX_TRY(find_functions(l, prefix, count, functions));
  return protect(l);
}

ax_status ax_object_load(const void *data, size_t bytes, ax_object_find *find, const char *prefix, uint32_t count,
                         ax_object_function *functions, ax_object_file *out) {
  loader l = {.data = data, .bytes = bytes, .find = find};
  *out = (ax_object_file){0};
  ax_status status = load(&l, prefix, count, functions);
  ax_object_file image = {l.image, l.image_bytes};
  if (status == AX_OK)
    *out = image;
  else
    ax_object_unload(&image);
  ax_free(l.places);
  ax_free(l.outside);
  return status;
}

void ax_object_unload(ax_object_file *object) {
  if (object->memory != NULL) munmap(object->memory, object->bytes);
  *object = (ax_object_file){0};
}

/* --- Several --- */

static ax_status take_number(ax_objects *objects, uint32_t *out) {
  if (objects->free != 0) {
    *out = objects->free - 1;
    objects->free = objects->all[*out].next;
    return AX_OK;
  }
  AX_TRY(ax_grow(&objects->all, sizeof objects->all[0], objects->count, 1, &objects->capacity));
  *out = objects->count++;
  return AX_OK;
}

static void give_number(ax_objects *objects, uint32_t number) {
  objects->all[number] = (ax_held_object){.next = objects->free};
  objects->free = number + 1;
}

ax_status ax_objects_load(ax_objects *objects, const void *data, size_t bytes, ax_object_find *find, const char *prefix,
                          uint32_t count, ax_object_function *functions) {
  uint32_t number;
  ax_object_file object;
  AX_TRY(take_number(objects, &number));
  ax_status status = ax_object_load(data, bytes, find, prefix, count, functions, &object);
  if (status != AX_OK) {
    give_number(objects, number);
    return status;
  }
  objects->all[number] = (ax_held_object){.object = object, .next = objects->fresh, .dropped = ++objects->clock};
  objects->fresh = number + 1;
  objects->bytes += object.bytes;
  objects->idle_bytes += object.bytes;
  return AX_OK;
}

uint32_t ax_objects_of(const ax_objects *objects, ax_object_function function) {
  for (uint32_t at = objects->fresh; at != 0; at = objects->all[at - 1].next) {
    const ax_object_file *object = &objects->all[at - 1].object;
    if ((uintptr_t)function - (uintptr_t)object->memory < object->bytes) return at - 1;
  }
  return AX_NONE;
}

void ax_objects_use(ax_objects *objects, uint32_t number) {
  if (objects->all[number].users++ == 0) objects->idle_bytes -= objects->all[number].object.bytes;
}

void ax_objects_drop(ax_objects *objects, uint32_t number) {
  if (--objects->all[number].users > 0) return;
  objects->all[number].dropped = ++objects->clock;
  objects->idle_bytes += objects->all[number].object.bytes;
}

typedef struct idle {
  uint64_t dropped;
  uint32_t number;
} idle;

static int by_drop(const void *x, const void *y) {
  const idle *a = x, *b = y;
  return a->dropped < b->dropped ? -1 : a->dropped > b->dropped;
}

static bool is_idle(const ax_held_object *held) { return held->object.memory != NULL && held->users == 0; }

static void unload(ax_objects *objects, uint32_t number) {
  ax_object_file *object = &objects->all[number].object;
  objects->bytes -= object->bytes;
  objects->idle_bytes -= object->bytes;
  ax_object_unload(object);
  give_number(objects, number);
}

void ax_objects_trim(ax_objects *objects, size_t most_idle) {
  uint32_t count = 0;
  if (objects->idle_bytes <= most_idle) return;
  idle *all = ax_alloc(objects->count * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t i = 0; i < objects->count; i++)
    if (is_idle(&objects->all[i])) all[count++] = (idle){objects->all[i].dropped, i};
  qsort(all, count, sizeof all[0], by_drop);
  for (uint32_t k = 0; k < count && objects->idle_bytes > most_idle; k++) unload(objects, all[k].number);
  ax_free(all);
}

void ax_objects_trim_all(ax_objects *objects) {
  for (uint32_t i = 0; i < objects->count; i++)
    if (is_idle(&objects->all[i])) unload(objects, i);
  if (objects->bytes == 0) ax_objects_deinit(objects);
}

bool ax_objects_have(const ax_objects *objects, uint32_t number) {
  return number < objects->count && objects->all[number].object.memory != NULL;
}

void ax_objects_deinit(ax_objects *objects) {
  for (uint32_t i = 0; i < objects->count; i++) ax_object_unload(&objects->all[i].object);
  ax_free(objects->all);
  *objects = (ax_objects){0};
}
