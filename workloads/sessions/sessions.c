/* Sessions as on a desktop: each thinks, starts a small program, opens a document, edits it and saves it. Their number grows until nine
 * of ten actions no longer end within the bound; each number is printed with its time, and last the largest that kept the bound.
 * Without a bound (0) that many sessions work at once, and the mean time of their actions is printed.
 * Usage: sessions BOUND_MS THINK_MS STEP_SECONDS MOST FOLDER */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DESKTOP (16u << 20) /* what a session holds in memory */
#define DOCUMENT (192u << 10)
#define BINS 2000 /* of half a millisecond */

/* What the sessions tell their parent. */
static struct shared {
    uint64_t actions;
    uint64_t microseconds;
    uint64_t bins[BINS];
} *all;

static const char *folder;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void rest(double seconds)
{
    struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&time, NULL);
}

static void start_program(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* The words of a document, each counted in the memory of the session. */
static void open_document(const char *document, uint32_t *desktop)
{
    uint32_t word = 5381;
    for (size_t i = 0; i < DOCUMENT; i++) {
        if (document[i] == ' ') {
            desktop[word % (DESKTOP / sizeof *desktop)]++;
            word = 5381;
        } else {
            word = word * 33 + (uint8_t)document[i];
        }
    }
}

static void edit(char *document, unsigned *seed)
{
    size_t at = (size_t)rand_r(seed) % (DOCUMENT / 2);
    memmove(document + at + 8, document + at, DOCUMENT - at - 8);
    memcpy(document + at, " edited ", 8);
}

static void save(const char *document, unsigned number)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/document-%u", folder, number);
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0) {
        if (write(file, document, 32u << 10) < 0)
            _exit(1);
        close(file);
    }
}

static void session(unsigned number, double think, double until)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    unsigned seed = 4711 + number;
    uint32_t *desktop = malloc(DESKTOP);
    char *document = malloc(DOCUMENT);
    if (!desktop || !document)
        _exit(1);
    memset(desktop, 1, DESKTOP);
    for (size_t i = 0; i < DOCUMENT; i++)
        document[i] = rand_r(&seed) % 6 ? (char)('a' + rand_r(&seed) % 26) : ' ';
    for (unsigned action = 0;; action++) {
        rest(think * (0.5 + (double)(rand_r(&seed) % 1000) / 1000));
        double began = now();
        if (began >= until)
            _exit(0);
        start_program();
        open_document(document, desktop);
        edit(document, &seed);
        if (action % 4 == 3)
            save(document, number);
        double took = now() - began;
        size_t bin = (size_t)(took * 2000);
        __atomic_fetch_add(&all->microseconds, (uint64_t)(took * 1e6), __ATOMIC_RELAXED);
        __atomic_fetch_add(&all->bins[bin < BINS ? bin : BINS - 1], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&all->actions, 1, __ATOMIC_RELAXED);
    }
}

/* Milliseconds within which nine of ten actions of so many sessions ended. */
static double response(unsigned count, double think, double seconds)
{
    memset(all, 0, sizeof *all);
    /* All are there before the first of them works. */
    double begin = now() + 0.01 * count, until = begin + seconds;
    for (unsigned number = 0; number < count; number++) {
        pid_t child = fork();
        if (child == 0) {
            rest(begin - now() > 0 ? begin - now() : 0);
            session(number, think, until);
        }
        if (child < 0) {
            perror("sessions: fork");
            exit(1);
        }
    }
    for (int status; wait(&status) > 0;) {
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            fprintf(stderr, "sessions: a session ended badly\n");
            exit(1);
        }
    }
    uint64_t below = 0;
    for (size_t bin = 0; bin < BINS; bin++) {
        below += all->bins[bin];
        if (below * 10 >= all->actions * 9)
            return (double)(bin + 1) / 2;
    }
    return 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: sessions BOUND_MS THINK_MS STEP_SECONDS MOST FOLDER\n");
        return 2;
    }
    double bound = atof(argv[1]), think = atof(argv[2]) / 1000, seconds = atof(argv[3]);
    unsigned most = (unsigned)strtoul(argv[4], NULL, 10), count = 4, kept = 0, failed = 0;
    folder = argv[5];
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        perror("sessions: mmap");
        return 1;
    }
    if (bound <= 0) {
        response(most, think, seconds);
        printf("action: %.4f ms, the mean of %lu actions of %u sessions\n", (double)all->microseconds / 1e3 / (double)all->actions,
               (unsigned long)all->actions, most);
        return 0;
    }
    double best = 0;
    /* Up by half each time, and then between the last that kept the bound and the first that did not. */
    while (count <= most && (!failed || failed - kept > 1 + kept / 20)) {
        double time = response(count, think, seconds);
        printf("tried %u: %.1f ms\n", count, time);
        if (time <= bound) {
            kept = count;
            best = time;
        } else {
            failed = count;
        }
        count = failed ? (kept + failed) / 2 : count + count / 2;
    }
    printf("sessions: %u within %.0f ms (%.1f ms)%s\n", kept, bound, best, failed ? "" : ", and more were not tried");
    return kept ? 0 : 1;
}
