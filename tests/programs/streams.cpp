// C++: streams with text in their buffers and formats set; std::thread with a future that is not yet kept.
#include "state.h"
#include <fstream>
#include <future>
#include <iomanip>
#include <sstream>
#include <thread>

int main() {
    start_threads();
    std::ostringstream text;
    std::string name = "streams." + std::to_string(rank) + ".data";
    std::ofstream file(name);
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    std::thread waiter([&] { text << std::hex << future.get(); });
    file << std::setprecision(3) << std::fixed;
    for (int i = 0; i < 5; i++) {
        file << i / 8.0 << ' ';
        beat();
    }
    promise.set_value(255);
    waiter.join();
    beat();
    file.close();
    std::ifstream in(name);
    std::string line;
    std::getline(in, line);
    CHECK(line == "0.000 0.125 0.250 0.375 0.500 " && text.str() == "ff");
    beat();
    say("%s", line.c_str());
    return done("streams");
}
