/* Included by tile_template.h, and of the same kind: few rows by some steps of b, over many of its columns, where b lies in rows
   and is read as it lies.

     b[steps, columns]  runs side by side, panel by panel; what comes later is fetched meanwhile
     held               a panel's sums, that wait for the next steps

   The sums are the tile's: one chain over the steps for each result. */

/* Sums, two vectors of b and a broadcast stay in registers: very few rows take wider panels. */
#define WIDE_ROWS 2

/* rows and vectors are constants at every call, since this is always inlined. */
static inline __attribute__((always_inline)) void KIND(stream_of)(const ax_product_stream *t, const int rows, const int vectors) {
  const int64_t width = vectors * VECTOR_BYTES, ahead = t->ahead, a_step = t->a_step, b_step = t->b_step, c_row = t->c_row;
  char *held = t->held, *c = t->c;
  for (int64_t panel = 0; panel < t->panels; panel++, held += rows * width, c += width) {
    SUM sum[ROWS][4];
    const char *a = t->a, *b = t->b + panel * width;
    const char *fetched = panel + ahead < t->panels ? b + ahead * width : t->next + (panel + ahead - t->panels) * width;
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (SUM){0};
    if (t->resumes)
      UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
          RESULTS(load)(held + (i * vectors + j) * VECTOR_BYTES);
    for (int64_t step = t->steps; step > 0; step--, a += a_step, b += b_step, fetched += b_step) {
      FACTOR right[4];
      UNROLL for (int j = 0; j < vectors; j++) right[j] = UNITS(load)(b + j * VECTOR_BYTES);
      if (ahead > 0)
        UNROLL for (int64_t at = 0; at < width; at += 64) __builtin_prefetch(fetched + at);
      UNROLL for (int i = 0; i < rows; i++) {
        FACTOR left = UNITS(broadcast)(a + i * UNIT_BYTES);
        UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = MULTIPLY_ADD(sum[i][j], left, right[j]);
      }
    }
    if (t->pauses) {
      UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
          RESULTS(store)(held + (i * vectors + j) * VECTOR_BYTES, sum[i][j]);
      continue;
    }
    char *to = c;
    UNROLL for (int i = 0; i < rows; i++, to += c_row) UNROLL for (int j = 0; j < vectors; j++) {
      if (t->add) sum[i][j] += RESULTS(load)(to + j * VECTOR_BYTES);
      RESULTS(store)(to + j * VECTOR_BYTES, sum[i][j]);
    }
  }
}

static void KIND(stream)(const ax_product_stream *t) {
  switch (t->rows) {
    case 1: KIND(stream_of)(t, 1, 4); break;
    case 2: KIND(stream_of)(t, 2, 4); break;
    case 3: KIND(stream_of)(t, 3, 2); break;
    case 4: KIND(stream_of)(t, 4, 2); break;
#if ROWS > 4
    case 5: KIND(stream_of)(t, 5, 2); break;
    case 6: KIND(stream_of)(t, 6, 2); break;
#endif
#if ROWS > 6
    case 7: KIND(stream_of)(t, 7, 2); break;
    case 8: KIND(stream_of)(t, 8, 2); break;
    case 9: KIND(stream_of)(t, 9, 2); break;
    case 10: KIND(stream_of)(t, 10, 2); break;
    case 11: KIND(stream_of)(t, 11, 2); break;
    case 12: KIND(stream_of)(t, 12, 2); break;
    case 13: KIND(stream_of)(t, 13, 2); break;
    case 14: KIND(stream_of)(t, 14, 2); break;
#endif
  }
}
