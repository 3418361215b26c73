// Exceptions through many frames, in threads; the standard library.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static int deep(int n) {
    if (n == 0) throw std::runtime_error("deep");
    return deep(n - 1) + 1;
}
int main() {
    std::vector<std::thread> threads;
    int caught = 0;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            try {
                deep(50);
            } catch (std::exception &) {
                __sync_fetch_and_add(&caught, 1);
            }
        });
    for (auto &t : threads) t.join();
    std::map<int, std::string> map;
    for (int i = 0; i < 100000; i++) map[i] = std::to_string(i);
    try {
        map.at(-1);
    } catch (std::out_of_range &) {
        caught++;
    }
    std::puts(caught == 5 && map.size() == 100000 ? "passed" : "failed");
}
