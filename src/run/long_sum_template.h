/* Sums of many numbers, made in runs. run/gemm.c includes this once for each kind of number. It defines before:

     NUMBER       float or double
     KIND(name)   the name for that kind */

/* total + lack += more, as if exactly. Arrays are whole cache lines; a few numbers are added at a time, so that compilers use
   vectors. */
static void KIND(add_exactly)(NUMBER *restrict total, NUMBER *restrict lack, const NUMBER *restrict more, int64_t count) {
  enum { at_once = 64 / sizeof(NUMBER) };
  for (int64_t begin = 0; begin < count; begin += at_once)
    for (int64_t i = begin; i < begin + at_once; i++) {
      const NUMBER sum = total[i] + more[i], added = sum - total[i];
      lack[i] += (total[i] - (sum - added)) + (more[i] - added);
      total[i] = sum;
    }
}

static void KIND(add_run)(char *total, char *lack, const char *run, int64_t count) {
  KIND(add_exactly)((NUMBER *)(void *)total, (NUMBER *)(void *)lack, (const NUMBER *)(const void *)run, count);
}

/* c (+)= total + lack, from dense rows into rows c_row apart. If the total is an infinity or a NaN, `lack` is a NaN and is left
   out. */
static void KIND(put_sums)(char *to, const char *totals, const char *lacks, const ax_product *p, int64_t c_row, bool add) {
  NUMBER *c = (NUMBER *)(void *)to;
  const NUMBER *total = (const NUMBER *)(const void *)totals, *lack = (const NUMBER *)(const void *)lacks;
  for (int64_t row = 0; row < p->m; row++, c += c_row)
    for (int64_t column = 0; column < p->n; column++, total++, lack++) {
      const NUMBER sum = isfinite(*total) ? *total + *lack : *total;
      c[column] = add ? c[column] + sum : sum;
    }
}

#undef NUMBER
#undef KIND
