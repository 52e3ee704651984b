//go:build linux && cgo

package runtime

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void give_back(void) { malloc_trim(0); }
#else
static void give_back(void) {}
#endif
*/
import "C"

// giveMemoryBack returns freed memory that the C library keeps to the system. glibc keeps it for the thread that
// allocated it, in up to eight pools a core: a server that opens a new version now and then would grow by the size of a
// model each time, until every pool has held one.
func giveMemoryBack() { C.give_back() }
