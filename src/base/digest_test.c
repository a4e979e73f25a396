/* Digests of texts of lengths about those of a block, against Python's hashlib; in one go and piece by piece. */
#include <stdio.h>

#include "base/digest.h"
#include "support/cmocka.h"

/* Of the first so many of the bytes 7 i + 3. */
static const struct {
  size_t bytes;
  const char *digest;
} known[] = {
    {0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
    {1, "e88bd757ad5b9bedf372d8d3f0cf6c962a469db61a265f6418e1ffed86da29ec"},
    {3, "9facd640130c81e7f318a8d5c660bc1b0f5d03861ffbd4cc1358e0e904593c28"},
    {64, "586c0dd87616ec042093edc5f87f880d37ca73618e99b03d5850ce9be478721f"},
    {127, "c9ae3859964b35f04c54b36d33cf299d7290ee621005d28e51598a943560aaaa"},
    {128, "f0501d06597880592bc49234eef100ec1ff349058d0e9d9b753504e24af86dd6"},
    {129, "a34a4e1e03c541dfbf3099c4b6c143c022ced65c28bd7e8a10e0a098461aecf0"},
    {255, "f2d64a40e9412a3414161ff6250075225418fd7c271c1123e162e1bca0de9f93"},
    {256, "d93ebb9c802f5630ab22516fd82b6c21bc8bd551d531349b715f046ed11ed871"},
    {257, "4ce481b24d387422d2bc2baa03d1afd55a1327939ff537c71eb9b38709268649"},
    {1000, "d62b6c768ce1afc8367e0498ab2f8e3f7c178c35b1429f14c4604b545d200f52"},
};

static void check(size_t bytes, size_t piece, const char *wanted) {
  unsigned char text[1000];
  char got[65];
  ax_digester digester;
  for (size_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)(7 * i + 3);
  ax_digester_init(&digester);
  for (size_t at = 0; at < bytes; at += piece) ax_digester_add(&digester, text + at, bytes - at < piece ? bytes - at : piece);
  ax_digest digest = ax_digester_finish(&digester);
  for (size_t i = 0; i < sizeof digest.bytes; i++) snprintf(got + 2 * i, 3, "%02x", digest.bytes[i]);
  assert_string_equal(got, wanted);
}

static void known_digests(void **state) {
  (void)state;
  static const size_t pieces[] = {1, 7, 64, 128, 129, 1000};
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) check(known[k].bytes, pieces[p], known[k].digest);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_digests)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
