#include "core/reserve.h"

#include "core/state.h"
#include "tests/lib/test.h"

int main(void)
{
    return 0;
}
