/* Made by make_utf8_golden.py; see there. */
static const unsigned char edge_bytes[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                            0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                            0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
static const char all_scalars_sha256[] =
    "e0a7693f7362e88827c15e772e55b3490bd983f90711df7f3ef36c2b1ef6847e";
static const char edge_decoded_sha256[] =
    "ffcfa1e8b86e3446cc4c6a088b0ecedf2c1625c1fca206966a79b616aa72eedf";
enum { EDGE_N_VALID = 2277 };
