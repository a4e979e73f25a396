/* What angles too large for a few parts of pi are reduced by (vector_f32.h: f64_large_angle): x / pi less the nearest even number, for
   f32 above 2^17.

   Such an x is m 2^e with a whole m of 24 bits, and m (2^e / pi mod 2) differs from x / pi by an even number. 2^e / pi mod 2 is an
   entry of a table, in two parts. The first has 28 bits behind the point, so that its product with m is exact; the second has 53
   bits of its own. So the error is at most 2^-55, and no f32 is so near to a multiple of pi / 2 that it counts. */
#ifndef AX_JIT_MATH_LARGE_ANGLE_H
#define AX_JIT_MATH_LARGE_ANGLE_H

/* [e], from 2^-6 on: the exponent of 2^17, less 23 */
static const double large_angle_table[][2] = {
    {0x1.45f3000p-8, 0x1.b727220a94fe1p-30}, {0x1.45f3080p-7, -0x1.236377d5ac07bp-31}, {0x1.45f3080p-6, -0x1.236377d5ac07bp-30},
    {0x1.45f3060p-5, 0x1.b9391054a7f0ap-30}, {0x1.45f3070p-4, -0x1.1b1bbead603d9p-31}, {0x1.45f3070p-3, -0x1.1b1bbead603d9p-30},
    {0x1.45f306cp-2, 0x1.c9c882a53f84fp-30}, {0x1.45f306ep-1, -0x1.b1bbead603d8bp-32}, {0x1.45f306ep+0, -0x1.b1bbead603d8bp-31},
    {0x1.17cc1b8p-1, -0x1.b1bbead603d8bp-30}, {0x1.17cc1b7p+0, 0x1.391054a7f09d6p-31}, {0x1.7cc1b70p-3, 0x1.391054a7f09d6p-30},
    {0x1.7cc1b74p-2, -0x1.8ddf56b01ec54p-30}, {0x1.7cc1b72p-1, 0x1.c882a53f84eb0p-31}, {0x1.7cc1b72p+0, 0x1.c882a53f84eb0p-30},
    {0x1.f306dcap-1, -0x1.bbead603d8a83p-32}, {0x1.f306dcap+0, -0x1.bbead603d8a83p-31}, {0x1.e60db94p+0, -0x1.bbead603d8a83p-30},
    {0x1.cc1b727p+0, 0x1.1054a7f09d5f4p-31}, {0x1.9836e4ep+0, 0x1.1054a7f09d5f4p-30}, {0x1.306dc9dp+0, -0x1.df56b01ec5417p-30},
    {0x1.836e4e4p-2, 0x1.054a7f09d5f48p-32}, {0x1.836e4e4p-1, 0x1.054a7f09d5f48p-31}, {0x1.836e4e4p+0, 0x1.054a7f09d5f48p-30},
    {0x1.06dc9c9p+0, -0x1.f56b01ec54170p-30}, {0x1.b727220p-5, 0x1.529fc2757d1f5p-34}, {0x1.b727220p-4, 0x1.529fc2757d1f5p-33},
    {0x1.b727220p-3, 0x1.529fc2757d1f5p-32}, {0x1.b727220p-2, 0x1.529fc2757d1f5p-31}, {0x1.b727220p-1, 0x1.529fc2757d1f5p-30},
    {0x1.b727221p+0, -0x1.5ac07b1505c16p-30}, {0x1.6e4e441p+0, 0x1.4a7f09d5f47d5p-30}, {0x1.b939106p-1, -0x1.6b01ec5417056p-30},
    {0x1.b939105p+0, 0x1.29fc2757d1f53p-30}, {0x1.727220bp+0, -0x1.ac07b1505c159p-30}, {0x1.c9c882ap-1, 0x1.4fe13abe8fa9ap-31},
    {0x1.c9c882ap+0, 0x1.4fe13abe8fa9ap-30}, {0x1.9391055p+0, -0x1.603d8a82e0acbp-30}, {0x1.27220a9p+0, 0x1.3f84eafa3ea6ap-30},
    {0x1.391054cp-2, -0x1.80f62a0b82b2dp-30}, {0x1.391054ap-1, 0x1.fc2757d1f534ep-31}, {0x1.391054ap+0, 0x1.fc2757d1f534ep-30},
    {0x1.c882a54p-2, -0x1.ec54170565912p-36}, {0x1.c882a54p-1, -0x1.ec54170565912p-35}, {0x1.c882a54p+0, -0x1.ec54170565912p-34},
    {0x1.91054a8p+0, -0x1.ec54170565912p-33}, {0x1.220a950p+0, -0x1.ec54170565912p-32}, {0x1.1054a80p-2, -0x1.ec54170565912p-31},
    {0x1.1054a80p-1, -0x1.ec54170565912p-30}, {0x1.1054a7fp+0, 0x1.3abe8fa9a6ee0p-33}, {0x1.054a7f0p-3, 0x1.3abe8fa9a6ee0p-32},
    {0x1.054a7f0p-2, 0x1.3abe8fa9a6ee0p-31}, {0x1.054a7f0p-1, 0x1.3abe8fa9a6ee0p-30}, {0x1.054a7f1p+0, -0x1.8a82e0acb223fp-30},
    {0x1.529fc20p-5, 0x1.d5f47d4d37703p-31}, {0x1.529fc20p-4, 0x1.d5f47d4d37703p-30}, {0x1.529fc28p-3, -0x1.505c1596447e5p-32},
    {0x1.529fc28p-2, -0x1.505c1596447e5p-31}, {0x1.529fc28p-1, -0x1.505c1596447e5p-30}, {0x1.529fc27p+0, 0x1.5f47d4d377037p-30},
    {0x1.4a7f09ep-1, -0x1.4170565911f92p-30}, {0x1.4a7f09dp+0, 0x1.7d1f534ddc0dbp-30}, {0x1.29fc276p-1, -0x1.05c1596447e49p-30},
    {0x1.29fc275p+0, 0x1.f47d4d377036ep-30}, {0x1.4fe13acp-2, -0x1.70565911f924fp-34}, {0x1.4fe13acp-1, -0x1.70565911f924fp-33},
    {0x1.4fe13acp+0, -0x1.70565911f924fp-32}, {0x1.3f84eb0p-1, -0x1.70565911f924fp-31}, {0x1.3f84eb0p+0, -0x1.70565911f924fp-30},
    {0x1.fc2757cp-2, 0x1.1f534ddc0db63p-30}, {0x1.fc2757ep-1, -0x1.c1596447e493bp-30}, {0x1.fc2757dp+0, 0x1.f534ddc0db629p-32},
    {0x1.f84eafap+0, 0x1.f534ddc0db629p-31}, {0x1.f09d5f4p+0, 0x1.f534ddc0db629p-30}, {0x1.e13abe9p+0, -0x1.596447e493ad5p-34},
    {0x1.c2757d2p+0, -0x1.596447e493ad5p-33}, {0x1.84eafa4p+0, -0x1.596447e493ad5p-32}, {0x1.09d5f48p+0, -0x1.596447e493ad5p-31},
    {0x1.3abe900p-4, -0x1.596447e493ad5p-30}, {0x1.3abe8f8p-3, 0x1.4d377036d8a56p-30}, {0x1.3abe8fcp-2, -0x1.65911f924eb53p-30},
    {0x1.3abe8fap-1, 0x1.34ddc0db6295ap-30}, {0x1.3abe8fbp+0, -0x1.96447e493ad4dp-30}, {0x1.d5f47d4p-2, 0x1.a6ee06db14acdp-31},
    {0x1.d5f47d4p-1, 0x1.a6ee06db14acdp-30}, {0x1.d5f47d5p+0, -0x1.6447e493ad4cep-31}, {0x1.abe8faap+0, -0x1.6447e493ad4cep-30},
    {0x1.57d1f53p+0, 0x1.377036d8a5665p-30}, {0x1.5f47d4ep-1, -0x1.911f924eb5336p-30}, {0x1.5f47d4dp+0, 0x1.bb81b6c52b328p-31},
    {0x1.7d1f534p-1, 0x1.bb81b6c52b328p-30}, {0x1.7d1f535p+0, -0x1.11f924eb53362p-31}, {0x1.f47d4d4p-1, -0x1.11f924eb53362p-30},
    {0x1.f47d4d3p+0, 0x1.dc0db6295993cp-30}, {0x1.e8fa9a7p+0, -0x1.1f924eb53361ep-32}, {0x1.d1f534ep+0, -0x1.1f924eb53361ep-31},
    {0x1.a3ea69cp+0, -0x1.1f924eb53361ep-30}, {0x1.47d4d37p+0, 0x1.c0db6295993c4p-30}, {0x1.1f534dep-1, -0x1.f924eb53361dep-32},
    {0x1.1f534dep+0, -0x1.f924eb53361dep-31}, {0x1.f534de0p-3, -0x1.f924eb53361dep-30}, {0x1.f534ddcp-2, 0x1.b6c52b3278872p-35},
    {0x1.f534ddcp-1, 0x1.b6c52b3278872p-34}, {0x1.f534ddcp+0, 0x1.b6c52b3278872p-33}, {0x1.ea69bb8p+0, 0x1.b6c52b3278872p-32},
    {0x1.d4d3770p+0, 0x1.b6c52b3278872p-31}, {0x1.a9a6ee0p+0, 0x1.b6c52b3278872p-30}, {0x1.534ddc1p+0, -0x1.24eb53361de38p-31},
    {0x1.4d37704p-1, -0x1.24eb53361de38p-30}, {0x1.4d37703p+0, 0x1.b6295993c4390p-30}, {0x1.34ddc0ep-1, -0x1.275a99b0ef1bfp-31},
};

#endif
