"""check_layers.py finds each kind of violation, and nothing in a tree that obeys the rules."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from check_layers import violations  # noqa: E402


class CheckLayers(unittest.TestCase):
    def found(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(violations(root))

    def test_allowed_includes_are_not_reported(self):
        self.assertEqual(
            self.found(
                {
                    "src/quoka/replay/a.cpp": '#include "quoka/replay/b.hpp"\n#include <Eigen/Core>\n'
                    '#include "quoka/metrics/c.hpp"\n#include <vector>\n',
                    "src/quoka/hdf5/a.cpp": "#include <hdf5.h>\n#include <hdf5_hl.h>\n",
                    "apps/quoka_sweep/main.cpp": '#include <CLI/CLI.hpp>\n#include "options.hpp"\n',
                }
            ),
            [],
        )

    def test_a_lower_room_may_not_include_a_higher_one(self):
        found = self.found({"src/quoka/metrics/a.hpp": '#include "quoka/replay/replay.hpp"\n'})
        self.assertEqual(len(found), 1)
        self.assertIn("src/quoka/metrics/a.hpp: metrics may not include quoka/replay/replay.hpp", found[0])

    def test_libraries_stay_in_their_rooms(self):
        for place, header in [
            ("src/quoka/results", "hdf5.h"),
            ("src/quoka/capture", "H5Fpublic.h"),
            ("src/quoka/sweep", "CLI/CLI.hpp"),
            ("src/quoka/results", "nlohmann/json.hpp"),
            ("src/quoka/replay", "spdlog/spdlog.h"),
            ("src/quoka/hdf5", "Eigen/Core"),
            ("apps/quoka_sweep", "toml++/toml.h"),
        ]:
            with self.subTest(place=place, header=header):
                self.assertEqual(len(self.found({f"{place}/a.cpp": f"#  include <{header}>\n"})), 1)

    def test_a_parser_has_one_user_per_room(self):
        text = "#include <toml++/toml.h>\n"
        found = self.found({"src/quoka/sweep/a.cpp": text, "src/quoka/sweep/b.cpp": text})
        self.assertEqual(len(found), 1)
        self.assertIn("src/quoka/sweep/a.cpp already", found[0])

    def test_includes_are_written_from_the_include_root(self):
        self.assertEqual(len(self.found({"src/quoka/core/a.cpp": '#include "b.hpp"\n'})), 1)

    def test_a_new_folder_needs_a_row_in_the_table(self):
        self.assertEqual(len(self.found({"src/quoka/misc/a.cpp": "\n"})), 1)


if __name__ == "__main__":
    unittest.main()
