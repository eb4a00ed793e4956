#!/usr/bin/env python3
"""The checks themselves find what they are there for."""

import pathlib
import tempfile
import unittest

import catch_macros
import doc_examples
import header_includes
import links
import no_sleeping
import source
import sources_listed
import symbols


def tree(files):
    folder = tempfile.TemporaryDirectory()
    for name, text in files.items():
        path = pathlib.Path(folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


class Source(unittest.TestCase):
    def test_blanks_comments_and_literals_in_place(self):
        text = 'int a = 1\'000; // b\nauto c = "d\\"(" /* e\n f */ + R"x(g")x";\nchar h = \'(\';'
        blanked = source.code(text)
        self.assertEqual(len(blanked), len(text))
        self.assertEqual(blanked.split(), ["int", "a", "=", "1'000;", "auto", "c", "=", "+", ";", "char", "h", "=", ";"])


class CatchMacros(unittest.TestCase):
    def found(self, text):
        return [problem.split(":")[1] for problem in catch_macros.problems_in(text, "f")]

    def test_finds_macros_in_handlers_and_threads(self):
        self.assertEqual(self.found("bus.on<Ping>([&](const Ping& p) {\n  CHECK(p.n == 1);\n});"), ["2"])
        self.assertEqual(self.found('bus.on("*", [&] { REQUIRE_FALSE(x); });'), ["1"])
        self.assertEqual(self.found("std::thread worker([&] { REQUIRE(true); });"), ["1"])
        self.assertEqual(self.found("threads.emplace_back([&, i]() mutable { INFO(i); });"), ["1"])
        self.assertEqual(self.found("bus.on<P>([](P) -> task<int> { auto f = [] { FAIL(); }; f(); });"), ["1"])

    def test_lets_the_test_thread_assert(self):
        self.assertEqual(self.found("bus.on<Ping>([&](const Ping&) { ++count; });\nCHECK(count == 1);"), [])
        self.assertEqual(self.found("REQUIRE_THROWS_AS(bus.on<Ping>([] { return 1; }), ValidationError);"), [])
        self.assertEqual(self.found("bus.on<Ping>([] { /* CHECK(x) */ log(\"CHECK(1)\"); });"), [])


class HeaderIncludes(unittest.TestCase):
    def test_finds_what_is_forbidden_and_allows_the_exceptions(self):
        with tree({
            "abxbus/a.hpp": "#include <boost/json/fwd.hpp>\n#include <boost/json.hpp>\n# include <fmt/format.h>\n",
            "abxbus/json.hpp": "#include <boost/json.hpp>\n#include <mimalloc.h>\n",
            "abxbus/tbb.hpp": "#include <oneapi/tbb/task_arena.h>\n#include <vector>\n",
        }) as folder:
            found = [problem.split("/abxbus/")[1].split(": ")[0] for problem in header_includes.problems(pathlib.Path(folder))]
        self.assertEqual(found, ["a.hpp:2", "a.hpp:3", "json.hpp:2"])


class Links(unittest.TestCase):
    def test_finds_links_that_lead_nowhere(self):
        with tree({
            "README.md": "[a](docs/a.md) [b](docs/b.md)\n[c](docs/a.md#first-part) [d](docs/a.md#second) [e](#none)\n"
                         "[f](https://example.org/x) ![g](docs/g.svg)\n[h](../out.md)\n",
            "docs/a.md": "# First part\n`[x](y)` [up](../README.md)\n```\n[z](w)\n# Second\n```\n<!-- [v](u) -->\n"
                         "[r]\n\n[r]: missing.md\n",
            "build/c.md": "[x](nowhere.md)",
        }) as folder:
            found = [problem.rpartition(": ")[0] for problem in links.problems(pathlib.Path(folder))]
        self.assertEqual(found, ["README.md:1", "README.md:2", "README.md:2", "README.md:3", "README.md:4", "docs/a.md:10"])

    def test_names_headings_as_renderers_do(self):
        self.assertEqual(links.anchors("# A `b`, c-d\n## A b, c-d\n## [L](x.md)\n"), {"a-b-c-d", "a-b-c-d-1", "l"})


class DocExamples(unittest.TestCase):
    def test_compares_shown_programs(self):
        program = "int main() {\n}\n"
        block = "<!-- code: examples/quickstart.cpp -->\n```cpp\n{}```\n"
        for readme, number in {
            block.format(program): 0,
            block.format("int main() {\n  return 1;\n}\n"): 1,
            block.format(program + "\n"): 1,
            "nothing": 1,
            block.format(program) + "<!-- code: examples/other.cpp -->\n```cpp\n```\n": 1,
            "<!-- code: examples/quickstart.cpp -->\ntext\n": 1,
        }.items():
            with tree({"README.md": readme, "examples/quickstart.cpp": program}) as folder:
                self.assertEqual(len(list(doc_examples.problems(pathlib.Path(folder)))), number, readme)


class NoSleeping(unittest.TestCase):
    def test_finds_calls_of_the_platform(self):
        with tree({
            "a.cpp": "std::this_thread::sleep_for(1s);\nthis_handler::sleep_for(1s);\n// usleep(1)\n::nanosleep(&t, 0);\n",
            "b.hpp": "namespace this_handler {\nvoid sleep_for(Seconds);\n}\n",
        }) as folder:
            found = [problem.split(":")[1] for problem in no_sleeping.problems([folder])]
        self.assertEqual(found, ["1", "4"])


class SourcesListed(unittest.TestCase):
    def test_finds_what_no_list_names(self):
        with tree({
            "lib/CMakeLists.txt": "set(sources\n  a.cpp\n  # b.cpp\n)\n", "lib/a.cpp": "", "lib/b.cpp": "", "lib/c.hpp": "",
            "test/CMakeLists.txt": "f(SOURCES x/y.cpp)", "test/x/y.cpp": "", "test/package/z.cpp": "",
            "perf/CMakeLists.txt": "", "examples/CMakeLists.txt": "set(examples\n  q\n)\n", "examples/q.cpp": "",
        }) as folder:
            found = list(sources_listed.problems(pathlib.Path(folder)))
        self.assertEqual(len(found), 1)
        self.assertIn("lib/b.cpp: ", found[0])


class Symbols(unittest.TestCase):
    def test_tells_namespaces(self):
        for symbol, namespace in {
            "_ZN6abxbus8EventBus4emitEv": "abxbus",
            "_ZNK6abxbus9BaseEvent2idEv": "abxbus",
            "_ZNKO6abxbus1AEv": "abxbus",
            "_ZTVN6abxbus5ErrorE": "abxbus",
            "_ZTIN6abxbus5ErrorE": "abxbus",
            "_ZGVZN6abxbus1fEvE1x": "abxbus",
            "_ZZN6abxbus1fEvE1x": "abxbus",
            "_ZTWN6abxbus6detail1tE": "abxbus",
            "_ZThn16_N6abxbus1A1fEv": "abxbus",
            "_ZNSt6vectorIiSaIiEE9push_backEOi": "std",
            "_ZSt4moveIiEvv": "std",
            "_ZNSs4swapERSs": "std",
            "_ZTISt9exception": "std",
            "_ZTIPKN6abxbus9BaseEventE": "abxbus",
            "_ZTIZN6abxbus1fEvEUlvE_": "abxbus",
            "_ZN5boost4json5valueD1Ev": "boost",
            "_Z5helperv": None,
            "main": None,
        }.items():
            self.assertEqual(symbols.outermost(symbol), namespace, symbol)

    def test_judges(self):
        self.assertIsNone(symbols.problem("T", "_ZN6abxbus7versionEv"))
        self.assertIsNone(symbols.problem("W", "_ZSt4moveIiEvv"))
        self.assertIsNone(symbols.problem("V", "DW.ref.__gxx_personality_v0"))
        self.assertIsNotNone(symbols.problem("T", "_ZSt4moveIiEvv"))
        self.assertIsNotNone(symbols.problem("W", "_ZN5other1fEv"))
        self.assertIsNotNone(symbols.problem("T", "_Z5helperv"))
        for name in ("malloc", "free", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPvm", "mi_malloc"):
            self.assertEqual(symbols.problem("W", name), "an allocator function")


if __name__ == "__main__":
    unittest.main()
