//go:build opensm

/*
 * What Go's runtime cannot do without. It starts when the library is loaded, by a
 * constructor, and where it then gets no memory, thread or descriptor it ends the
 * process, which is OpenSM. So the first thread of the runtime, which does all the
 * rest, passes here first (the linker wraps pthread_create): what the runtime needs
 * is taken and given back, and where that fails the thread is not started. create()
 * then refuses with a line, and no function of Go's is ever called.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"

/*
 * What the plugin and OpenSM take from here on, with some margin: measured with OpenSM
 * 3.3.23 and Go 1.26 on two CPUs, see docs/dev/plugin.md. Address space is mostly what the
 * runtime and malloc reserve and never use, data mostly stacks.
 */
#define NEEDED_SPACE	((size_t) 3 << 30)	/* OpenSM with the plugin has 2.2 GiB, alone 0.4 */
#define NEEDED_DATA	((size_t) 256 << 20)
#define NEEDED_MEMORY	((size_t) 64 << 20)	/* OpenSM with the plugin has 20 MiB resident */
#define NEEDED_THREADS	24			/* and one for each CPU; both together have 16 on two CPUs */
#define MOST_THREADS	256
#define NEEDED_FILES	16			/* the plugin has 4 */

static char refusal[256];

const char *ibw_refusal(void)
{
	return refusal[0] ? refusal : NULL;
}

static void refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(refusal, sizeof(refusal), format, args);
	va_end(args);
}

static int can_map(size_t size, int protection)
{
	void *at = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return 0;
	munmap(at, size);
	return 1;
}

static int can_open(int n)
{
	int fds[NEEDED_FILES], got = 0;

	while (got < n && (fds[got] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		got++;
	n = got == n;
	while (got > 0)
		close(fds[--got]);
	return n;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

static void *wait_for(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

static int can_start(int n)
{
	pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[MOST_THREADS];
	pthread_attr_t attr;
	int got = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_mutex_lock(&held);
	while (got < n && __real_pthread_create(&threads[got], &attr, wait_for, &held) == 0)
		got++;
	pthread_mutex_unlock(&held);
	n = got == n;
	while (got > 0)
		pthread_join(threads[--got], NULL);
	pthread_attr_destroy(&attr);
	return n;
}

/* The least memory.max (cgroup v2) of this process' group and those above it. */
static size_t memory_max(void)
{
	static const char root[] = "/sys/fs/cgroup";
	char path[4096], name[4200], *end;
	size_t least = SIZE_MAX;
	FILE *f = fopen("/proc/self/cgroup", "re");

	path[0] = '\0';
	while (f && fgets(path, sizeof(path), f) && strncmp(path, "0::/", 4) != 0)
		path[0] = '\0';
	if (f)
		fclose(f);
	if (!path[0])
		return least;
	memmove(path, path + 3, strlen(path + 3) + 1);
	path[strcspn(path, "\n")] = '\0';
	for (;;) {
		unsigned long long max;

		snprintf(name, sizeof(name), "%s%s/memory.max", root, path);
		f = fopen(name, "re");
		if (f && fscanf(f, "%llu", &max) == 1 && max < least)	/* else it is "max" */
			least = (size_t) max;
		if (f)
			fclose(f);
		end = strrchr(path, '/');
		if (!end)
			return least;
		*end = '\0';
	}
}

static void look(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int threads = NEEDED_THREADS + (cpus > 0 ? (int) cpus : 1);

	if (threads > MOST_THREADS)
		threads = MOST_THREADS;
	if (!can_open(NEEDED_FILES))
		refuse("%d more files cannot be opened, which the plugin needs: raise LimitNOFILE (ulimit -n)", NEEDED_FILES);
	else if (memory_max() < NEEDED_MEMORY)
		refuse("the cgroup has %zu MiB of memory, and OpenSM with the plugin needs %zu MiB: raise MemoryMax (memory.max)",
		       memory_max() >> 20, NEEDED_MEMORY >> 20);
	else if (!can_map(NEEDED_SPACE, PROT_NONE))
		refuse("%zu MiB of address space are not left, which the plugin needs: raise LimitAS (ulimit -v), or set no limit", NEEDED_SPACE >> 20);
	else if (!can_map(NEEDED_DATA, PROT_READ | PROT_WRITE))
		refuse("%zu MiB of data are not left, which the plugin needs: raise LimitDATA (ulimit -d), or set no limit", NEEDED_DATA >> 20);
	else if (!can_start(threads))
		refuse("%d more threads cannot be started, which the plugin needs: raise LimitNPROC (ulimit -u) and TasksMax (pids.max)", threads);
}

/* The first call is that of the runtime, when the library is loaded. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int called;
	sigset_t set, saved;
	int err;

	if (called)
		return __real_pthread_create(thread, attr, run, arg);
	called = 1;
	look();
	if (refusal[0])
		return 0;
	/* All threads of the runtime inherit this: a file that is too large is an error, not the end. */
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, &saved);
	err = __real_pthread_create(thread, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	if (err)
		refuse("the first thread of Go's runtime cannot be started: %s", strerror(err));
	return 0;
}
