#include "send/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/lib/test.h"

static bool may(const char *text, enum ip_kind least)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    CHECK(inet_pton(AF_INET, text, &to.sin_addr) == 1);
    return reach_allowed((const struct sockaddr *)&to, least);
}

static void set_address(int sock, unsigned long what, const char *device, const char *text)
{
    struct ifreq r = { 0 };
    struct sockaddr_in a = { .sin_family = AF_INET };
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", device);
    CHECK(inet_pton(AF_INET, text, &a.sin_addr) == 1);
    memcpy(&r.ifr_addr, &a, sizeof a);
    CHECK(ioctl(sock, what, &r) == 0);
}

static void add_bridge(const char *name, const char *address, const char *mask)
{
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(sock >= 0 && ioctl(sock, SIOCBRADDBR, name) == 0);
    set_address(sock, SIOCSIFADDR, name, address);
    set_address(sock, SIOCSIFNETMASK, name, mask);
    close(sock);
}

static void kinds_of_addresses_are_kept_apart(void)
{
    CHECK(!may("127.0.0.1", IP_PRIVATE) && !may("169.254.169.254", IP_PRIVATE));
    CHECK(!may("172.31.255.9", IP_PUBLIC) && may("198.41.0.4", IP_PUBLIC));
    CHECK(may("127.0.0.1", IP_HERE));
}

static void this_machine_and_its_jobs_are_here_whatever_their_addresses(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        SKIP("needs a network of its own: %s", strerror(errno));
    CHECK(may("203.0.113.7", IP_PUBLIC) && may("192.168.7.7", IP_PRIVATE));
    add_bridge("lan0", "203.0.113.7", "255.255.255.0");
    add_bridge("nsi4k2mq0", "192.168.7.1", "255.255.255.0");
    CHECK(!may("203.0.113.7", IP_PRIVATE) && !may("203.0.113.7", IP_PUBLIC));
    CHECK(may("203.0.113.8", IP_PUBLIC)); /* a neighbour */
    CHECK(!may("192.168.7.1", IP_PRIVATE) && !may("192.168.7.7", IP_PRIVATE));
    CHECK(may("192.168.8.7", IP_PRIVATE) && may("192.168.7.7", IP_HERE));
}

static const struct test tests[] = {
    { "kinds of addresses are kept apart", kinds_of_addresses_are_kept_apart },
    { "this machine and its jobs are here, whatever their addresses",
      this_machine_and_its_jobs_are_here_whatever_their_addresses },
};
TEST_CASES(tests)
