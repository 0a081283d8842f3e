// What windows.h, termios.h and complex.h define must not break a header of ours. The headers of
// others that ours include come first: some of them do not survive this.
#include "every_outside_header.inc"

#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define small char
#define near
#define far
#define interface struct
#define IN
#define OUT
#define DELETE (0x00010000L)
#define ERROR 0
#define I _Complex_I
#define B0 0000000

#include "every_tenon_header.inc"

int main() {}
