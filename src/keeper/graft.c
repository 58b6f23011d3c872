#include "keeper/graft.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/file.h"

/* Newer than some C libraries that we are built with. */
#define TREE_CLONE 1u
#define TREE_RECURSIVE 0x8000u /* AT_RECURSIVE */
#define MOVE_F_EMPTY 0x4u
#define MOVE_T_EMPTY 0x40u
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

struct attributes {
    uint64_t set, clear, propagation, user_ns;
};

int graft(int from, int to, unsigned attributes)
{
    struct attributes a = { .set = attributes, .propagation = MS_PRIVATE };
    AUTO(file_close_p)
    int tree = (int)syscall(SYS_open_tree, from, "",
                            TREE_CLONE | TREE_RECURSIVE | O_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0 ||
        syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | TREE_RECURSIVE, &a, sizeof a) < 0)
        return -1;
    return (int)syscall(SYS_move_mount, tree, "", to, "", MOVE_F_EMPTY | MOVE_T_EMPTY);
}
