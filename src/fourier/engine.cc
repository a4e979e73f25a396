/* The engine of Fourier transforms by ducc0's plans of one dimension (fft1d_impl.h, under its BSD licence).

   Short lines are transformed as many at once as a register has numbers, each in a lane of its own; lines that are left over are
   accompanied by copies. So are long ones if there are many; few long ones, and a short one that is alone, are transformed one by one. The
   plan's key decides, and lanes
   do not know of each other: a line's result has the same bits wherever it stands and however lines are shared out to threads. */
#include "fourier/engine.h"

#include <cstring>

#include <ducc0/fft/fft1d_impl.h>

namespace {

using ducc0::Cmplx;
using ducc0::detail_fft::pocketfft_c;
using ducc0::detail_fft::pocketfft_r;

template <typename T> using lanes = ducc0::native_simd<T>;
template <typename T> constexpr int64_t width = lanes<T>::size();

bool several_at_once(const ax_fourier_key &key) { return key.many || (!key.alone && key.n <= AX_FOURIER_SHORT); }

template <typename T> struct transform {
  ax_fourier_key key;
  pocketfft_c<T> *complex = nullptr;
  pocketfft_r<T> *real = nullptr;
  bool several() const { return several_at_once(key); }
  int64_t buffer() const { return complex != nullptr ? 2 * (int64_t)complex->bufsize() : (int64_t)real->bufsize(); } // numbers
};

// --- Numbers in lanes: number k of line j is lane j of x[k] ---

template <typename T> struct vector_of {
  typedef T type __attribute__((vector_size(sizeof(lanes<T>))));
  typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> whole;
  typedef whole mask __attribute__((vector_size(sizeof(lanes<T>))));
};
template <typename T> using vector = typename vector_of<T>::type;

template <typename T> inline vector<T> loaded(const T *from) {
  vector<T> x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <typename T> inline void stored(T *to, vector<T> x) { std::memcpy(to, &x, sizeof x); }

// Number k is number where[k] of a and, after it, b.
template <typename T> inline vector<T> shuffled(vector<T> a, vector<T> b, typename vector_of<T>::mask where) {
#ifdef __clang__ // which has only shuffles whose places are written out
  constexpr int n = width<T>;
  vector<T> x;
  for (int k = 0; k < n; k++) x[k] = where[k] < n ? a[where[k]] : b[where[k] - n];
  return x;
#else
  return __builtin_shuffle(a, b, where);
#endif
}

// A square transposed: of two rows `step` apart the numbers beside the diagonal of each square change places.
template <typename T, int step> inline void turn(vector<T> *x) {
  constexpr int n = width<T>;
  if constexpr (step < n) {
    typename vector_of<T>::mask low, high;
    for (int k = 0; k < n; k++) {
      low[k] = (k & step) == 0 ? k : n + k - step;
      high[k] = (k & step) == 0 ? k + step : n + k;
    }
    for (int i = 0; i < n; i++)
      if ((i & step) == 0) {
        const vector<T> a = x[i], b = x[i + step];
        x[i] = shuffled<T>(a, b, low);
        x[i + step] = shuffled<T>(a, b, high);
      }
    turn<T, 2 * step>(x);
  }
}

// `count` numbers of each of as many lines as there are lanes; line j begins at line[j]. Numbers lie one after the other.
template <typename T> void gather(const T *const *line, int64_t count, T *x) {
  constexpr int n = width<T>;
  int64_t k = 0;
  for (; k + n <= count; k += n) {
    vector<T> square[n];
    for (int j = 0; j < n; j++) square[j] = loaded<T>(line[j] + k);
    turn<T, 1>(square);
    for (int j = 0; j < n; j++) stored<T>(x + (k + j) * n, square[j]);
  }
  for (; k < count; k++)
    for (int j = 0; j < n; j++) x[k * n + j] = line[j][k];
}

template <typename T> void scatter(T *const *line, int64_t lines, int64_t count, const T *x) {
  constexpr int n = width<T>;
  int64_t k = 0;
  for (; k + n <= count; k += n) {
    vector<T> square[n];
    for (int j = 0; j < n; j++) square[j] = loaded<T>(x + (k + j) * n);
    turn<T, 1>(square);
    for (int j = 0; j < lines; j++) stored<T>(line[j] + k, square[j]);
  }
  for (; k < count; k++)
    for (int j = 0; j < lines; j++) line[j][k] = x[k * n + j];
}

// The same of lines side by side: `count` elements of so many parts each, `step` numbers from one to the next.
template <typename T> void gather_side_by_side(const T *from, int64_t step, int64_t count, int parts, T *x) {
  constexpr int n = width<T>;
  typename vector_of<T>::mask even, odd;
  for (int k = 0; k < n; k++) even[k] = 2 * k, odd[k] = 2 * k + 1;
  for (int64_t i = 0; i < count; i++, from += step) {
    const vector<T> a = loaded<T>(from);
    if (parts == 1) {
      stored<T>(x + i * n, a);
      continue;
    }
    const vector<T> b = loaded<T>(from + n);
    stored<T>(x + 2 * i * n, shuffled<T>(a, b, even));
    stored<T>(x + (2 * i + 1) * n, shuffled<T>(a, b, odd));
  }
}

template <typename T> void scatter_side_by_side(T *to, int64_t step, int64_t count, int parts, const T *x) {
  constexpr int n = width<T>;
  typename vector_of<T>::mask low, high;
  for (int k = 0; k < n; k++) low[k] = k / 2 + k % 2 * n, high[k] = n / 2 + k / 2 + k % 2 * n;
  for (int64_t i = 0; i < count; i++, to += step) {
    if (parts == 1) {
      stored<T>(to, loaded<T>(x + i * n));
      continue;
    }
    const vector<T> re = loaded<T>(x + 2 * i * n), im = loaded<T>(x + (2 * i + 1) * n);
    stored<T>(to, shuffled<T>(re, im, low));
    stored<T>(to + n, shuffled<T>(re, im, high));
  }
}

// --- One side of a job: the lines of an array ---

struct side {
  int64_t count, s;
  int parts; // of an element: 2 of a complex number
  int64_t at(int64_t line) const { return (line / s * count * s + line % s) * parts; }
};

side from_side(const ax_fourier_job &job) {
  return {job.kind == AX_FOURIER_REAL_BACK ? job.n / 2 + 1 : job.n, job.s, job.kind == AX_FOURIER_REAL ? 1 : 2};
}
side to_side(const ax_fourier_job &job) {
  return {job.kind == AX_FOURIER_REAL ? job.n / 2 + 1 : job.n, job.s, job.kind == AX_FOURIER_REAL_BACK ? 1 : 2};
}

// Lines first .. first + lines - 1, and the last one again in lanes that are left over, as x[number][lane].
template <typename T> void read(const side &from, const T *memory, int64_t first, int64_t lines, T *x) {
  constexpr int n = width<T>;
  if (from.s > 1 && lines == n && first % from.s + n <= from.s) {
    gather_side_by_side<T>(memory + from.at(first), from.s * from.parts, from.count, from.parts, x);
    return;
  }
  const T *line[n];
  for (int64_t j = 0; j < n; j++) line[j] = memory + from.at(first + (j < lines ? j : lines - 1));
  if (from.s == 1) {
    gather<T>(line, from.count * from.parts, x);
    return;
  }
  for (int64_t i = 0; i < from.count; i++)
    for (int p = 0; p < from.parts; p++)
      for (int j = 0; j < n; j++) x[(i * from.parts + p) * n + j] = line[j][i * from.s * from.parts + p];
}

template <typename T> void write(const side &to, T *memory, int64_t first, int64_t lines, const T *x) {
  constexpr int n = width<T>;
  if (to.s > 1 && lines == n && first % to.s + n <= to.s) {
    scatter_side_by_side<T>(memory + to.at(first), to.s * to.parts, to.count, to.parts, x);
    return;
  }
  T *line[n];
  for (int64_t j = 0; j < lines; j++) line[j] = memory + to.at(first + j);
  if (to.s == 1) {
    scatter<T>(line, lines, to.count * to.parts, x);
    return;
  }
  for (int64_t i = 0; i < to.count; i++)
    for (int p = 0; p < to.parts; p++)
      for (int64_t j = 0; j < lines; j++) line[j][i * to.s * to.parts + p] = x[(i * to.parts + p) * n + j];
}

// --- Transforms in place, of numbers that are lanes or single ones. ducc0 keeps the transform of real numbers without the two
//     imaginary parts that are zero, re0 re1 im1 re2 .. from x[0] on; ours is re0 0 re1 im1 re2 .., which stands from x[-1] on: all but
//     the first two numbers are at the same place ---

template <typename T> T factor(const ax_fourier_job &job) {
  return ax_fourier_is_back(job.kind) ? T(1.0L / (long double)job.n) : T(1);
}

// How many numbers before x what is transformed begins.
int64_t before(const ax_fourier_job &job) { return job.kind == AX_FOURIER_REAL_BACK ? 1 : 0; }

// x: where the numbers stand, with room for one before them and one behind. Returns where the results stand.
template <typename T, typename V> V *transformed(const transform<T> &plan, const ax_fourier_job &job, V *x, V *buffer) {
  const T by = factor<T>(job);
  if (!ax_fourier_is_real(job.kind))
    return reinterpret_cast<V *>(plan.complex->exec(reinterpret_cast<Cmplx<V> *>(x), reinterpret_cast<Cmplx<V> *>(buffer), by,
                                                    job.kind == AX_FOURIER_FORWARD));
  if (job.kind == AX_FOURIER_REAL_BACK) {
    x[0] = x[-1];
    return plan.real->exec(x, buffer, by, false);
  }
  V *y = plan.real->exec(x, buffer, by, true);
  y[-1] = y[0];
  y[0] = V(T(0));
  if (job.n % 2 == 0) y[job.n] = V(T(0));
  return y - 1;
}

int64_t rounded(int64_t numbers) { return (numbers + 15) / 16 * 16; }
constexpr int64_t guard = 16; // numbers before x and before the buffer, of which the last is used; 16 keep them aligned

// numbers: of x in `transformed`
template <typename T> int64_t numbers(const transform<T> &plan) { return rounded((plan.key.real ? 1 : 2) * plan.key.n + 2); }

template <typename T> int64_t work_bytes(const transform<T> &plan) {
  const int64_t both = guard + numbers(plan) + guard + rounded(plan.buffer() + 2);
  return both * (int64_t)(plan.several() ? sizeof(lanes<T>) : sizeof(T));
}

template <typename T> void run_lanes(const transform<T> &plan, const ax_fourier_job &job, int64_t begin, int64_t end, const T *from,
                                     T *to, void *work) {
  typedef lanes<T> V;
  V *x = static_cast<V *>(work) + guard, *buffer = x + numbers(plan) + guard;
  for (int64_t i = begin; i < end;) {
    int64_t lines = end - i < width<T> ? end - i : width<T>;
    const int64_t beside = job.s - i % job.s; // lines that stand side by side with this one
    if (job.s >= width<T> && beside < lines) lines = beside;
    read<T>(from_side(job), from, i, lines, reinterpret_cast<T *>(x - before(job)));
    write<T>(to_side(job), to, i, lines, reinterpret_cast<const T *>(transformed<T, V>(plan, job, x, buffer)));
    i += lines;
  }
}

template <typename T> void copy(int64_t count, int parts, const T *from, int64_t from_step, T *to, int64_t to_step) {
  if (from_step == parts && to_step == parts) {
    std::memcpy(to, from, (size_t)(count * parts) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; i++)
    for (int p = 0; p < parts; p++) to[i * to_step + p] = from[i * from_step + p];
}

template <typename T> void run_each(const transform<T> &plan, const ax_fourier_job &job, int64_t begin, int64_t end, const T *from,
                                    T *to, void *work) {
  const side in = from_side(job), out = to_side(job);
  T *x = static_cast<T *>(work) + guard, *buffer = x + numbers(plan) + guard;
  for (int64_t i = begin; i < end; i++) {
    copy<T>(in.count, in.parts, from + in.at(i), in.s * in.parts, x - before(job), in.parts);
    const T *y = transformed<T, T>(plan, job, x, buffer);
    copy<T>(out.count, out.parts, y, out.parts, to + out.at(i), out.s * out.parts);
  }
}

// --- The functions of the engine, by dtype ---

template <typename T> void destroy(transform<T> *plan) {
  delete plan->complex;
  delete plan->real;
  delete plan;
}

template <typename T> void *made(const ax_fourier_key &key) {
  transform<T> *plan = new transform<T>{key};
  try {
    if (key.real) plan->real = new pocketfft_r<T>((size_t)key.n, !plan->several());
    else plan->complex = new pocketfft_c<T>((size_t)key.n, !plan->several());
  } catch (...) {
    destroy(plan);
    throw;
  }
  return plan;
}

// A plan begins with its key.
const ax_fourier_key &key_of(const void *plan) { return *static_cast<const ax_fourier_key *>(plan); }
template <typename T> const transform<T> &plan_of(const void *plan) { return *static_cast<const transform<T> *>(plan); }

int64_t lines(const ax_fourier_key *key) { return !several_at_once(*key) ? 1 : key->wide ? width<double> : width<float>; }

void *make(const ax_fourier_key *key) {
  try {
    return key->wide ? made<double>(*key) : made<float>(*key);
  } catch (...) {
    return nullptr;
  }
}

void free_plan(void *plan) {
  if (plan == nullptr) return;
  if (key_of(plan).wide) destroy(static_cast<transform<double> *>(plan));
  else destroy(static_cast<transform<float> *>(plan));
}

template <typename T> int64_t footprint(const transform<T> &plan) {
  return (int64_t)(plan.key.real ? plan.real->footprint() : plan.complex->footprint());
}
int64_t bytes(const void *plan) {
  return key_of(plan).wide ? footprint(plan_of<double>(plan)) : footprint(plan_of<float>(plan));
}
int64_t needed(const void *plan) {
  return key_of(plan).wide ? work_bytes(plan_of<double>(plan)) : work_bytes(plan_of<float>(plan));
}

template <typename T> void run_of(const void *plan, const ax_fourier_job &job, int64_t begin, int64_t end, const void *from, void *to,
                                  void *work) {
  const transform<T> &p = plan_of<T>(plan);
  (p.several() ? run_lanes<T> : run_each<T>)(p, job, begin, end, static_cast<const T *>(from), static_cast<T *>(to), work);
}
bool run(const void *plan, const ax_fourier_job *job, int64_t begin, int64_t end, const void *from, void *to, void *work) {
  try {
    (key_of(plan).wide ? run_of<double> : run_of<float>)(plan, *job, begin, end, from, to, work);
    return true;
  } catch (...) {
    return false;
  }
}

} // namespace

extern "C" __attribute__((visibility("default"))) const ax_fourier_engine axle_fourier;
const ax_fourier_engine axle_fourier = {AX_FOURIER_ENGINE_VERSION, lines, make, free_plan, bytes, needed, run};
