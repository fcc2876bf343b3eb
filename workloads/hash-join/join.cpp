// A hash join as a database makes it: one table becomes a hash table, the rows of the other one look theirs up.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>

static uint64_t state = 88172645463325252u;

static uint64_t random_number() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

struct Row {
    uint64_t key, amount;
};

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: join ROWS_OF_THE_TABLE ROWS_THAT_LOOK_UP\n");
        return 2;
    }
    const size_t rows = strtoull(argv[1], nullptr, 10), probes = strtoull(argv[2], nullptr, 10);
    std::vector<Row> customers(rows);
    for (size_t i = 0; i < rows; i++) {
        customers[i] = {i * 2654435761u, random_number() % 1000};
    }
    std::unordered_map<uint64_t, const Row *> index;
    index.reserve(rows);
    for (const Row &row : customers) {
        index.emplace(row.key, &row);
    }
    const auto began = std::chrono::steady_clock::now();
    uint64_t sum = 0, found = 0;
    for (size_t i = 0; i < probes; i++) {
        // One in four finds no partner.
        const auto hit = index.find(random_number() % (rows + rows / 3) * 2654435761u);
        if (hit != index.end()) {
            sum += hit->second->amount;
            found++;
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    printf("probes: %.3f million per second (%llu found, sum %llu)\n", probes / took.count() / 1e6,
           (unsigned long long)found, (unsigned long long)sum);
}
