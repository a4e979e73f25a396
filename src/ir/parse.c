/* Text to programs: recursive descent over the grammar of README.md, adding each equation to a trace as it is read, so that
   the checks are those of tracing.

   Names live in the program whose text defines them: a nested program sees none of those around it. An operand that is a
   literal becomes a constant just before the equation that uses it; equal ones are shared within a program. */
#include "ir/parse.h"

#include "ir/number.h"

#include "ir/prim.h"

#include <string.h>

enum { most_word = 127, map_start = 64 };

/* --- Lists and maps in the parser's arena --- */

void *ax_list_add(ax_parser *parser, ax_list *list, size_t item_bytes) {
  if (list->count == list->capacity) {
    uint32_t capacity = list->capacity > 0 ? list->capacity * 2 : 8;
    void *items = capacity > list->capacity ? ax_arena_alloc(&parser->arena, capacity * item_bytes) : NULL;
    if (items == NULL) return NULL;
    if (list->count > 0) memcpy(items, list->items, list->count * item_bytes);
    list->items = items;
    list->capacity = capacity;
  }
  return (char *)list->items + list->count++ * item_bytes;
}

/* From strings of bytes to values: open addressing, at most half full. */
typedef struct entry {
  const char *key; /* NULL: free */
  size_t length;
  ax_value value;
} entry;
typedef struct map {
  entry *entries;
  uint32_t count, capacity; /* a power of two */
} map;

/* The entry of `key`, or the free one where it would be. */
static entry *map_find(const map *map, const char *key, size_t length) {
  uint64_t slot = ax_hash_bytes(AX_HASH_SEED, key, length);
  for (;; slot++) {
    entry *entry = &map->entries[slot & (map->capacity - 1)];
    if (entry->key == NULL || (entry->length == length && memcmp(entry->key, key, length) == 0)) return entry;
  }
}

static ax_status map_reserve(ax_parser *parser, map *map) {
  struct map old = *map;
  if (map->count * 2 < map->capacity) return AX_OK;
  map->capacity = old.capacity > 0 ? old.capacity * 2 : map_start;
  map->entries = ax_arena_alloc(&parser->arena, map->capacity * sizeof map->entries[0]);
  if (map->entries == NULL) return ax_out_of_memory(map->capacity * sizeof map->entries[0]);
  for (uint32_t i = 0; i < old.capacity; i++)
    if (old.entries[i].key != NULL) *map_find(map, old.entries[i].key, old.entries[i].length) = old.entries[i];
  return AX_OK;
}

/* --- Tokens --- */

bool ax_next_is(const ax_parser *parser, const char *word) { return ax_token_is(&parser->lexer.token, word); }

ax_status ax_accept(ax_parser *parser, const char *word, bool *found) {
  *found = ax_next_is(parser, word);
  return *found ? ax_lexer_next(&parser->lexer) : AX_OK;
}

ax_status ax_unexpected(const ax_parser *parser, const char *what) {
  const ax_lexeme *token = &parser->lexer.token;
  if (token->kind == AX_TOKEN_END)
    return ax_lexer_error(&parser->lexer, token, "expected %s, got the end of the text", what);
  return ax_lexer_error(&parser->lexer, token, "expected %s, got '%.*s'", what,
                        ax_token_shown(token), token->start);
}

ax_status ax_expect(ax_parser *parser, const char *word) {
  char quoted[32] = "'";
  if (ax_next_is(parser, word)) return ax_lexer_next(&parser->lexer);
  strncat(quoted, word, sizeof quoted - 3);
  return ax_unexpected(parser, strcat(quoted, "'"));
}

ax_status ax_expect_name(ax_parser *parser, const char *what, ax_lexeme *out) {
  *out = parser->lexer.token;
  if (out->kind != AX_TOKEN_NAME) return ax_unexpected(parser, what);
  return ax_lexer_next(&parser->lexer);
}

bool ax_token_word(const ax_lexeme *token, char *word) {
  if (token->length > most_word) return false;
  memcpy(word, token->start, token->length);
  word[token->length] = '\0';
  return true;
}

ax_status ax_expect_integer(ax_parser *parser, int64_t *out) {
  char word[most_word + 1];
  const ax_lexeme *token = &parser->lexer.token;
  if (token->kind != AX_TOKEN_NUMBER || !ax_token_word(token, word) || !ax_integer_parse(word, out))
    return ax_unexpected(parser, "an integer");
  return ax_lexer_next(&parser->lexer);
}

ax_status ax_expect_more(ax_parser *parser, const char *end, bool *more) {
  bool comma, ended;
  AX_TRY(ax_accept(parser, ",", &comma));
  AX_TRY(ax_accept(parser, end, &ended));
  *more = !ended;
  if (comma || ended) return AX_OK;
  return ax_unexpected(parser, *end == ')' ? "',' or ')'" : "',' or ']'");
}

bool ax_is_literal(const ax_lexeme *token) {
  static const char *const words[] = {"true", "false", "nan", "inf"};
  if (token->kind == AX_TOKEN_NUMBER) return true;
  for (size_t i = 0; i < AX_COUNT(words); i++)
    if (ax_token_is(token, words[i])) return true;
  return token->kind == AX_TOKEN_NAME && token->length > 4 && memcmp(token->start, "nan_", 4) == 0;
}

/* --- Values --- */

typedef struct binder { /* name:type, before a value has it */
  ax_lexeme name, type_at;
  ax_type type;
} binder;

typedef struct scope { /* one program being read */
  ax_parser *parser;
  ax_builder *builder;
  map names, literals;
  ax_list in_names, out_names; /* const char * */
} scope;

static ax_status parse_binder(scope *scope, ax_list *list) {
  ax_parser *parser = scope->parser;
  binder *binder = ax_list_add(parser, list, sizeof *binder);
  if (binder == NULL) return ax_out_of_memory(sizeof *binder);
  AX_TRY(ax_expect_name(parser, "a name", &binder->name));
  if (ax_is_reserved(binder->name.start, binder->name.length))
    return ax_lexer_error(&parser->lexer, &binder->name, "'%.*s' is a word of the language and cannot name a value",
                          ax_token_shown(&binder->name), binder->name.start);
  AX_TRY(ax_expect(parser, ":"));
  binder->type_at = parser->lexer.token;
  return ax_parse_type(parser, &scope->builder->axes, &binder->type);
}

/* `_` names nothing, so it may stand for any number of values. */
static ax_status define(scope *scope, const binder *binder, ax_value value) {
  const ax_lexeme *name = &binder->name;
  if (ax_token_is(name, "_")) return AX_OK;
  AX_TRY(map_reserve(scope->parser, &scope->names));
  entry *entry = map_find(&scope->names, name->start, name->length);
  if (entry->key != NULL)
    return ax_lexer_error(&scope->parser->lexer, name, "'%.*s' is defined twice",
                          ax_token_shown(name), name->start);
  *entry = (struct entry){name->start, name->length, value};
  scope->names.count++;
  return AX_OK;
}

/* Turns the trace's error into an error at `token`. */
static ax_status traced(const scope *scope, const ax_lexeme *token) {
  const ax_builder *builder = scope->builder;
  if (builder->status == AX_OK) return AX_OK;
  return ax_lexer_place(&scope->parser->lexer, token, ax_error(builder->status, "%s", builder->message));
}

static const ax_prim *literal_prim(void) {
  uint32_t i = 0;
  while (!ax_prim_is_literal(ax_prims[i])) i++; /* there is one, or no scalar could have been printed */
  return ax_prims[i];
}

static ax_status make_literal(scope *scope, const ax_lexeme *at, ax_value *out) {
  ax_parser *parser = scope->parser;
  ax_literal literal = {0};
  struct { /* what equal literals share */
    ax_element element;
    ax_dtype dtype;
  } key;
  AX_TRY(ax_parse_literal(parser, &literal));
  if (literal.type.rank > 0)
    return ax_lexer_error(&parser->lexer, at,
                          "only scalars are written as operands; constant[value=...] makes an array");
  memset(&key, 0, sizeof key);
  memcpy(&key.element, literal.data, ax_dtype_bytes(literal.type.dtype));
  key.dtype = literal.type.dtype;
  AX_TRY(map_reserve(parser, &scope->literals));
  entry *entry = map_find(&scope->literals, (const char *)&key, sizeof key);
  if (entry->key == NULL) {
    const char *kept = ax_arena_copy(&parser->arena, &key, sizeof key);
    if (kept == NULL) return ax_out_of_memory(sizeof key);
    ax_emit(literal_prim(), &literal, NULL, 0, out, 1);
    AX_TRY(traced(scope, at));
    *entry = (struct entry){kept, sizeof key, *out};
    scope->literals.count++;
  }
  *out = entry->value;
  return AX_OK;
}

static ax_status parse_operand(scope *scope, ax_value *out) {
  ax_parser *parser = scope->parser;
  ax_lexeme at = parser->lexer.token;
  if (ax_is_literal(&at) || ax_next_is(parser, "(")) return make_literal(scope, &at, out);
  if (at.kind != AX_TOKEN_NAME || ax_is_reserved(at.start, at.length)) return ax_unexpected(parser, "a value");
  const entry *entry = scope->names.capacity > 0 ? map_find(&scope->names, at.start, at.length) : NULL;
  if (entry == NULL || entry->key == NULL)
    return ax_lexer_error(&parser->lexer, &at, "'%.*s' is not defined here",
                          ax_token_shown(&at), at.start);
  *out = entry->value;
  return ax_lexer_next(&parser->lexer);
}

/* --- Equations --- */

/* A name that a colon follows begins the next equation; one token ahead decides. */
static ax_status at_operand(scope *scope, bool *out) {
  ax_parser *parser = scope->parser;
  const ax_lexeme *token = &parser->lexer.token;
  *out = ax_is_literal(token) || ax_next_is(parser, "("); /* the second: a complex number */
  if (*out || token->kind != AX_TOKEN_NAME || ax_next_is(parser, "in")) return AX_OK;
  ax_lexer here = parser->lexer;
  AX_TRY(ax_lexer_next(&parser->lexer));
  *out = !ax_next_is(parser, ":");
  parser->lexer = here;
  return AX_OK;
}

static ax_status parse_operands(scope *scope, ax_list *list) {
  for (;;) {
    bool is_operand;
    AX_TRY(at_operand(scope, &is_operand));
    if (!is_operand) return AX_OK;
    ax_value *value = ax_list_add(scope->parser, list, sizeof *value);
    if (value == NULL) return ax_out_of_memory(sizeof *value);
    AX_TRY(parse_operand(scope, value));
  }
}

/* @"prog.c:12", if it stands here: where the equation comes from. */
static ax_status parse_location(scope *scope) {
  ax_parser *parser = scope->parser;
  ax_builder_locate(scope->builder, NULL);
  if (!ax_next_is(parser, "@")) return AX_OK;
  AX_TRY(ax_lexer_next(&parser->lexer));
  const ax_lexeme *token = &parser->lexer.token;
  if (token->kind != AX_TOKEN_STRING || token->length < 3)
    return ax_lexer_error(&parser->lexer, token, "expected a location, as @\"file.c:12\"");
  char *location = ax_arena_alloc(&parser->arena, token->length);
  if (location == NULL) return ax_out_of_memory(token->length);
  memcpy(location, token->start + 1, token->length - 2);
  ax_builder_locate(scope->builder, location);
  return ax_lexer_next(&parser->lexer);
}

static ax_status add_eqn(scope *scope, const ax_lexeme *at, const ax_prim *prim, const void *params, const ax_list *in,
                         const ax_list *binders) {
  ax_parser *parser = scope->parser;
  const binder *binder = binders->items;
  uint32_t count = ax_prim_outs(prim, params, in->count);
  if (count != binders->count)
    return ax_lexer_error(&parser->lexer, at, "%s gives %u results, but %u are named", prim->name, count,
                          binders->count);
  ax_value *out = ax_arena_alloc(&parser->arena, count * sizeof out[0]);
  if (out == NULL) return ax_out_of_memory(count * sizeof out[0]);
  scope->builder->line = at->line;
  ax_emit(prim, params, in->items, in->count, out, count);
  AX_TRY(traced(scope, at));
  for (uint32_t i = 0; i < count; i++) {
    const ax_type *type = &scope->builder->types[out[i].id];
    if (!ax_type_equal(type, &binder[i].type))
      return ax_lexer_error(&parser->lexer, &binder[i].type_at, "%s gives %s here", prim->name,
                            ax_type_string(type, &scope->builder->axes));
    AX_TRY(define(scope, &binder[i], out[i]));
  }
  return AX_OK;
}

static ax_status parse_eqn(scope *scope) {
  ax_parser *parser = scope->parser;
  ax_list binders = {0}, in = {0};
  ax_lexeme at;
  while (!ax_next_is(parser, "=")) AX_TRY(parse_binder(scope, &binders));
  AX_TRY(ax_lexer_next(&parser->lexer));
  AX_TRY(ax_expect_name(parser, "the name of a primitive", &at));
  const ax_prim *prim = ax_prim_find(at.start, at.length);
  if (prim == NULL)
    return ax_lexer_error(&parser->lexer, &at, "there is no primitive \"%.*s\"",
                          ax_token_shown(&at), at.start);
  void *params = ax_arena_alloc(&parser->arena, prim->params_bytes);
  if (params == NULL) return ax_out_of_memory(prim->params_bytes);
  AX_TRY(ax_parse_params(parser, prim, &scope->builder->axes, params));
  scope->builder->line = at.line;
  AX_TRY(parse_operands(scope, &in));
  AX_TRY(parse_location(scope));
  return add_eqn(scope, &at, prim, params, &in, &binders);
}

/* --- Programs --- */

static ax_status keep_name(ax_parser *parser, ax_list *list, const ax_lexeme *token) {
  const char **name = ax_list_add(parser, list, sizeof *name);
  char *copy = name != NULL ? ax_arena_alloc(&parser->arena, token->length + 1) : NULL;
  if (copy == NULL) return ax_out_of_memory(token->length + 1);
  if (!ax_is_literal(token)) memcpy(copy, token->start, token->length);
  *name = copy;
  return AX_OK;
}

static ax_status parse_inputs(scope *scope) {
  ax_parser *parser = scope->parser;
  ax_list binders = {0};
  while (!ax_next_is(parser, ".")) {
    AX_TRY(parse_binder(scope, &binders));
    const binder *last = (const binder *)binders.items + binders.count - 1;
    ax_value value = ax_builder_input(scope->builder, &last->type);
    AX_TRY(traced(scope, &last->type_at));
    AX_TRY(define(scope, last, value));
    AX_TRY(keep_name(parser, &scope->in_names, &last->name));
  }
  return ax_lexer_next(&parser->lexer);
}

static ax_status parse_outputs(scope *scope, ax_list *outs) {
  ax_parser *parser = scope->parser;
  bool more;
  AX_TRY(ax_expect(parser, "("));
  AX_TRY(ax_accept(parser, ")", &more));
  for (more = !more; more;) {
    AX_TRY(keep_name(parser, &scope->out_names, &parser->lexer.token));
    ax_value *out = ax_list_add(parser, outs, sizeof *out);
    if (out == NULL) return ax_out_of_memory(sizeof *out);
    AX_TRY(parse_operand(scope, out));
    AX_TRY(ax_expect_more(parser, ")", &more));
  }
  return AX_OK;
}

static ax_status parse_body(scope *scope, ax_list *outs) {
  ax_parser *parser = scope->parser;
  AX_TRY(ax_expect(parser, "lambda"));
  AX_TRY(parse_inputs(scope));
  AX_TRY(ax_expect(parser, "let"));
  while (!ax_next_is(parser, "in")) AX_TRY(parse_eqn(scope));
  AX_TRY(ax_lexer_next(&parser->lexer));
  AX_TRY(parse_outputs(scope, outs));
  if (!ax_next_is(parser, "}")) return ax_unexpected(parser, "'}'"); /* passed over later, when the trace has ended */
  return AX_OK;
}

static ax_status parse_environment(ax_parser *parser, const ax_mesh *outer, ax_mesh *out) {
  ax_lexeme at = parser->lexer.token;
  bool given;
  *out = *outer;
  AX_TRY(ax_accept(parser, "axes", &given));
  if (given) AX_TRY(ax_parse_axes(parser, ";", false, out));
  if (ax_axes_begin_with(out, outer)) return AX_OK;
  return ax_lexer_error(&parser->lexer, &at, "the axes of a nested program begin with those around it");
}

static ax_status parse_program(ax_parser *parser, const ax_mesh *outer, scope *scope, ax_program **out) {
  ax_builder builder;
  ax_list outs = {0};
  ax_mesh axes;
  ax_lexeme at = parser->lexer.token;
  AX_TRY(ax_expect(parser, "{"));
  AX_TRY(parse_environment(parser, outer, &axes));
  ax_builder_begin(&builder, &axes);
  builder.seals = true;
  scope->parser = parser;
  scope->builder = &builder;
  ax_status status = parse_body(scope, &outs);
  if (status != AX_OK) {
    ax_builder_cancel(&builder);
    return status;
  }
  status = ax_builder_finish(&builder, outs.items, outs.count, out, NULL, NULL);
  return status == AX_OK ? AX_OK : ax_lexer_place(&parser->lexer, &at, status);
}

/* Programs that occur more than once have names, as in @a { .. }. Where @a stands without a text, it is that program. */
struct ax_named_programs {
  map map;          /* the id of a value is an index into .. */
  ax_list programs; /* ax_program *; NULL: its text is being read */
};

static ax_status add_name(ax_parser *parser, const ax_lexeme *name, uint32_t *index) {
  struct ax_named_programs *named = parser->named;
  ax_program **program = ax_list_add(parser, &named->programs, sizeof *program);
  if (program == NULL) return ax_out_of_memory(sizeof *program);
  AX_TRY(map_reserve(parser, &named->map));
  *index = named->programs.count - 1;
  *map_find(&named->map, name->start, name->length) = (entry){name->start, name->length, {.id = *index}};
  named->map.count++;
  return AX_OK;
}

/* Reads a name, if one stands here. A text follows: *index is where its program is to be kept. If none does, *known is the program
   of that name. No name: AX_NONE. */
static ax_status parse_program_name(ax_parser *parser, const ax_mesh *outer, uint32_t *index, ax_program **known) {
  ax_lexeme name;
  bool given;
  *index = AX_NONE, *known = NULL;
  AX_TRY(ax_accept(parser, "@", &given));
  if (!given) return AX_OK;
  AX_TRY(ax_expect_name(parser, "the name of a program", &name));
  if (parser->named == NULL) parser->named = ax_arena_alloc(&parser->arena, sizeof *parser->named);
  if (parser->named == NULL) return ax_out_of_memory(sizeof *parser->named);
  AX_TRY(map_reserve(parser, &parser->named->map));
  const entry *entry = map_find(&parser->named->map, name.start, name.length);
  if (ax_next_is(parser, "{")) {
    if (entry->key == NULL) return add_name(parser, &name, index);
    return ax_lexer_error(&parser->lexer, &name, "the program '%.*s' is defined twice", ax_token_shown(&name), name.start);
  }
  *known = entry->key != NULL ? ((ax_program **)parser->named->programs.items)[entry->value.id] : NULL;
  if (*known == NULL)
    return ax_lexer_error(&parser->lexer, &name, "the program '%.*s' is not defined before", ax_token_shown(&name), name.start);
  if (ax_axes_begin_with(&(*known)->axes, outer)) return AX_OK;
  return ax_lexer_error(&parser->lexer, &name, "the axes of a nested program begin with those around it");
}

ax_status ax_parse_nested(ax_parser *parser, const ax_mesh *outer, bool unify, ax_program **out) {
  scope scope = {0};
  uint32_t name;
  AX_TRY(parse_program_name(parser, outer, &name, out));
  if (*out != NULL) return AX_OK;
  if (parser->depth == AX_MAX_NESTING) return ax_unexpected(parser, "no deeper nesting");
  ax_program **kept = ax_list_add(parser, &parser->programs, sizeof *kept);
  if (kept == NULL) return ax_out_of_memory(sizeof *kept);
  uint32_t index = parser->programs.count - 1; /* the list may move */
  parser->depth++;
  AX_TRY(parse_program(parser, outer, &scope, out));
  parser->depth--;
  if (unify) *out = ax_unify_program(*out); /* its equations' positions are those of the first */
  ((ax_program **)parser->programs.items)[index] = *out;
  if (name != AX_NONE) ((ax_program **)parser->named->programs.items)[name] = *out;
  return ax_lexer_next(&parser->lexer);
}

/* Reads the whole text; names are moved out with the arena that holds them. */
static ax_status parse_text(ax_parser *parser, const char *text, size_t bytes, const char *source,
                            ax_program_names *names, ax_program **out) {
  const ax_mesh none = {0};
  scope scope = {0};
  AX_TRY(ax_lexer_init(&parser->lexer, text, bytes, source));
  ax_lexeme at = parser->lexer.token;
  AX_TRY(parse_program(parser, &none, &scope, out));
  ax_status status = ax_whole_check(*out);
  if (status != AX_OK) return ax_lexer_place(&parser->lexer, &at, status);
  AX_TRY(ax_lexer_next(&parser->lexer));
  if (parser->lexer.token.kind != AX_TOKEN_END) return ax_unexpected(parser, "the end of the text");
  if (names == NULL) return AX_OK;
  *names = (ax_program_names){.arena = parser->arena, .in = scope.in_names.items, .out = scope.out_names.items};
  parser->arena = (ax_arena){0};
  return AX_OK;
}

ax_status ax_program_parse_named(const char *text, size_t bytes, const char *source, const ax_hooks *hooks,
                                 ax_program_names *names, ax_program **out) {
  ax_parser parser = {.hooks = hooks};
  locale_t saved;
  *out = NULL;
  if (names != NULL) *names = (ax_program_names){0};
  AX_TRY(ax_require(text, "text"));
  if (bytes > INT32_MAX) return ax_error(AX_PARSE_ERROR, "%s: %zu bytes; a program's text has at most 2^31 - 1", source, bytes);
  AX_TRY(ax_text_locale_enter(&saved));
  ax_status status = parse_text(&parser, text, bytes, source, names, out);
  ax_text_locale_leave(saved);
  for (uint32_t i = 0; i < parser.programs.count; i++) ax_program_release(((ax_program **)parser.programs.items)[i]);
  for (uint32_t i = 0; i < parser.callbacks.count; i++) ax_callback_release(((ax_callback **)parser.callbacks.items)[i]);
  ax_arena_deinit(&parser.arena);
  if (status == AX_OK) return AX_OK;
  ax_program_release(*out);
  *out = NULL;
  return status;
}

ax_status ax_program_parse(const char *text, size_t bytes, const char *source, ax_program **out) {
  return ax_program_parse_named(text, bytes, source, NULL, NULL, out);
}

static ax_status parse_literal_text(ax_parser *parser, const char *text, const char *source, ax_literal *out) {
  AX_TRY(ax_lexer_init(&parser->lexer, text, strlen(text), source));
  AX_TRY(ax_parse_literal(parser, out));
  return parser->lexer.token.kind == AX_TOKEN_END ? AX_OK : ax_unexpected(parser, "the end of the text");
}

ax_status ax_literal_parse(const char *text, const char *source, ax_arena *arena, ax_literal *out) {
  ax_parser parser = {.arena = *arena};
  locale_t saved;
  AX_TRY(ax_text_locale_enter(&saved));
  ax_status status = parse_literal_text(&parser, text, source, out);
  ax_text_locale_leave(saved);
  *arena = parser.arena;
  return status;
}

void ax_program_names_deinit(ax_program_names *names) {
  ax_arena_deinit(&names->arena);
  *names = (ax_program_names){0};
}
