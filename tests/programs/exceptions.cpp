// C++: exceptions over MPI calls, containers, virtual functions, objects with destructors, of the thread and of the program.
#include "state.h"
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static int alive;

struct Shape {
    Shape() { alive++; }
    virtual ~Shape() { alive--; }
    virtual int area() const { return 1; }
};

struct Square : Shape {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override {
        if (side > 100) throw std::out_of_range("too large " + std::to_string(side));
        return side * side;
    }
};

struct Counter {
    std::string words{"a text that is too long to lie within the string itself"};
    int n = 5;
};
static thread_local Counter own;
static std::map<std::string, std::vector<int>> table{{"first", {1, 2, 3}}};

static int deep(int depth, const Shape &shape) {
    Shape guard;
    if (depth == 0) {
        beat();
        return shape.area();
    }
    return deep(depth - 1, shape) + 1;
}

int main() {
    start();
    std::unique_ptr<Shape> small(new Square(3)), large(new Square(500));
    std::string caught;
    for (int i = 0; i < 4; i++) {
        CHECK(deep(5, *small) == 14);
        try {
            deep(7, *large);
            CHECK(false);
        } catch (const std::exception &error) {
            beat();
            caught = error.what();
        }
        CHECK(alive == 2 && caught == "too large 500" && own.n++ == 5 + i && own.words.size() > 50);
        table["turn " + std::to_string(i)].push_back(i);
    }
    CHECK(table.size() == 5 && table["turn 3"][0] == 3 && table["first"].back() == 3);
    say("%s", caught.c_str());
    return done("exceptions");
}
