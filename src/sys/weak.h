/* weak - the seam through which a test takes one protection away, to see that its test notices.
 *
 * In every program that is installed both words are constants: nothing there can be weakened, and the
 * other way is not even compiled.  Only the test programs nightshiftd-weak and nightshift-keeper-weak,
 * built with NS_WEAK from the same sources, look into the file that NIGHTSHIFT_WEAK names, each time: names
 * with commas between them.  tests/lib/hostile_table.py lists them.
 */
#ifndef NS_SYS_WEAK_H
#define NS_SYS_WEAK_H

#include <stdbool.h>

#ifdef NS_WEAK
bool weak_here(const char *name);
#define weak_or(name, safe, unsafe) (weak_here(name) ? (unsafe) : (safe))
#else
#define weak_here(name) false
#define weak_or(name, safe, unsafe) (safe)
#endif

#endif
