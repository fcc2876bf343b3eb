// A program with a malloc of its own, which gets large blocks from mmap and small ones from sbrk.
#include "check.h"
struct head { size_t len, mapped; };
void *malloc(size_t len) {
    size_t whole = (len + sizeof(struct head) + 15) & ~15UL;
    struct head *head = whole >= M ? mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                   : sbrk((intptr_t)whole);
    if (head == (void *)-1)
        return NULL;
    *head = (struct head){len, whole >= M ? whole : 0};
    return head + 1;
}
void free(void *at) {
    struct head *head = (struct head *)at - 1;
    if (at && head->mapped)
        munmap(head, head->mapped);
}
void *calloc(size_t n, size_t len) {
    void *at = malloc(n * len);
    return at ? memset(at, 0, n * len) : NULL;
}
void *realloc(void *old, size_t len) {
    void *new = malloc(len);
    if (old && new) {
        size_t had = ((struct head *)old - 1)->len;
        memcpy(new, old, had < len ? had : len);
        free(old);
    }
    return new;
}
int main(void) {
    char *text = strdup("small");
    char *large = malloc(3 * M);
    memset(large, 7, 3 * M);
    large = realloc(large, 9 * M);
    CHECK(large && large[0] == 7 && large[3 * M - 1] == 7 && strcmp(text, "small") == 0);
    for (int i = 0; i < 5000; i++)
        CHECK(malloc(1000));
    free(large);
    free(text);
    return 0;
}
