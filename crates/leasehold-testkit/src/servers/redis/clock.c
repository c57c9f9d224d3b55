/* Moves the wall clock of the one program it is loaded into (LD_PRELOAD): every reading is the
 * kernel's plus the microseconds that stand in the file $LEASEHOLD_CLOCK_FILE, a native int64 that
 * may be rewritten at any time. Clocks that measure spans are left alone, as a step of the system's
 * clock leaves them alone.
 *
 * The kernel is asked by system call: looking up the C library's own function could allocate, and
 * an allocator that reads the time while it starts would come back here.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_micros;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("LEASEHOLD_CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, sizeof *offset_micros, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        offset_micros = page;
    close(file);
}

static int is_wall(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed || !offset_micros || !is_wall(clock))
        return failed;
    int64_t micros = *offset_micros;
    int64_t nanos = now->tv_nsec + micros % 1000000 * 1000;
    now->tv_sec += micros / 1000000;
    if (nanos < 0) {
        nanos += 1000000000;
        now->tv_sec -= 1;
    } else if (nanos >= 1000000000) {
        nanos -= 1000000000;
        now->tv_sec += 1;
    }
    now->tv_nsec = nanos;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    if (result)
        *result = exact.tv_sec;
    return exact.tv_sec;
}
