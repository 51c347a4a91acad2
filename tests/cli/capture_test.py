"""quoka-capture as a user runs it."""

import hashlib
import json
import os
import re
import resource
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

CAPTURE = os.environ["QUOKA_CAPTURE"]
MAKE_FAULT = os.environ["QUOKA_MAKE_FAULT"]
EMBEDDED = Path(os.environ["QUOKA_DATA"]) / "smollm2-135m_needles_2k.h5"

DONE, USAGE, BAD_INPUT, FAILED = 0, 2, 3, 4

# What verify must name for each fault.
CAUSES = {
    "scale": "softmax_scale 0.25 is wrong: 0.125 fits (half of it)",
    "softcap": "logits capped at 5",
    "sinks": "sinks dropped, the file has none",
    "window": "sliding_window 51 is wrong by one: 50 fits",
    "mapping": "interleaved (query head h reads KV head h mod n_kv_heads)",
    "norm": "q is of the stage before normalisation (",
    "rotation": "q is of the stage before rotation (rope_theta 100000",
    "swap": "k and v are swapped",
}


class CaptureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory(prefix="quoka-cli-")
        cls.addClassCleanup(cls.shared.cleanup)
        cls.right = cls.make("right")

    @classmethod
    def make(cls, fault):
        path = Path(cls.shared.name) / f"{fault}.h5"
        subprocess.run([MAKE_FAULT, EMBEDDED, path, fault], check=True)
        return path

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="quoka-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, *words, **kwargs):
        command = [CAPTURE, *(str(word) for word in words)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **kwargs)

    def run_ok(self, *words):
        result = self.run_program(*words)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return result.stdout

    def refused(self, code, words, *parts):
        result = self.run_program(*words)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        return result

    def test_help_names_every_verb_and_no_hidden_one(self):
        text = self.run_ok("--help")
        for verb in ["inspect", "verify", "import", "cut", "checksum"]:
            self.assertIn(verb, text)
            self.assertIn("--help", self.run_ok(verb, "--help"))
        self.assertNotIn("probe", text)
        self.assertIn("quoka-capture", self.run_ok("--version"))

    def test_bad_options_end_with_2(self):
        self.refused(USAGE, [], "no verb is given")
        self.refused(USAGE, ["look"], "quoka-capture")
        self.refused(USAGE, ["inspect"], "CAPTURE")
        self.refused(USAGE, ["inspect", self.right, "--colour"], "--colour")
        self.refused(USAGE, ["verify", self.right, "--threads", "0"], "--threads 0")
        self.refused(USAGE, ["cut", self.right, "--out", "x.h5", "--tokens", "7"], "no colon")
        self.refused(USAGE, ["cut", self.right, "--out", "x.h5", "--dtype", "float8"], "float8")
        self.refused(USAGE, ["cut", self.right, "--out", "x.h5", "--layers", "3"], "no layer 3", "18")

    def test_inspect_says_what_is_inside(self):
        text = self.run_ok("inspect", EMBEDDED)
        for part in ["SmolLM2-135M", "9:3 heads", "needle, group 0: violet", "scale 0.125"]:
            self.assertIn(part, text)
        described = json.loads(self.run_ok("inspect", "--json", EMBEDDED))
        self.assertEqual([layer["layer_index"] for layer in described["layers"]], [0, 18, 24])
        self.assertEqual(described["n_tokens"], 2016)
        self.assertEqual(described["bytes"], EMBEDDED.stat().st_size)
        self.assertEqual(described["annotations"][0]["kind"], "needle")

    def test_the_embedded_capture_passes_on_every_layer(self):
        report = json.loads(self.run_ok("verify", "--no-record", "--json", EMBEDDED))
        self.assertEqual(report["verdict"], "passed")
        self.assertEqual([layer["verdict"] for layer in report["layers"]], ["passed"] * 3)
        self.assertLess(report["worst_out_error"], 4e-3)

    def test_every_fault_is_named(self):
        for fault, cause in CAUSES.items():
            with self.subTest(fault):
                path = self.make(fault)
                result = self.run_program("verify", path)
                self.assertEqual(result.returncode, FAILED, result.stderr)
                self.assertIn(cause, result.stdout)
                self.assertIn(f"{path}: failed", result.stdout)

    def test_without_a_reference_there_is_nothing_to_verify(self):
        path = self.make("no_reference")
        result = self.run_program("verify", path)
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertIn("nothing to compare with", result.stdout)

    def test_the_verdict_is_noted_beside_the_capture_and_bound_to_its_bytes(self):
        capture = self.folder / "a.h5"
        capture.write_bytes(self.right.read_bytes())
        self.assertIn("not verified", self.run_ok("inspect", capture))
        self.run_ok("verify", capture, "--no-record")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["a.h5"])
        self.run_ok("verify", capture)
        note = json.loads((self.folder / "a.h5.verified.json").read_text())
        self.assertEqual(note["verdict"], "passed")
        self.assertEqual(note["capture_sha256"], hashlib.sha256(capture.read_bytes()).hexdigest())
        self.assertEqual(json.loads(self.run_ok("inspect", "--json", capture))["verified"], "passed")
        self.run_ok("cut", capture, "--out", "b.h5", "--tokens", ":100")
        (self.folder / "b.h5.verified.json").write_text(json.dumps(note))
        self.assertIn("not verified", self.run_ok("inspect", "b.h5"))

    def test_a_cut_passes_again(self):
        self.run_ok("cut", self.right, "--out", "cut.h5", "--kv-heads", "1", "--tokens", "40:200")
        self.assertIn("cut.h5: passed", self.run_ok("verify", "cut.h5"))
        (layer,) = json.loads(self.run_ok("inspect", "--json", "cut.h5"))["layers"]
        self.assertEqual((layer["n_q_heads"], layer["q_offset"], layer["n_keys"]), (3, 40, 200))
        self.refused(USAGE, ["cut", self.right, "--out", "cut.h5"], "exists already")

    def test_bfloat16_is_numbers_for_other_programs(self):
        self.run_ok("cut", self.right, "--out", "cut.h5", "--dtype", "bfloat16")
        self.run_ok("verify", "cut.h5")
        dump = subprocess.run(
            [os.environ["QUOKA_H5DUMP"], "-d", "/layers/018/k", "-s", "0,0,0", "-c", "1,1,4", "cut.h5"],
            cwd=self.folder, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        self.assertRegex(dump, r"\(0,0,0\): -?\d+\.\d+")

    def test_checksums_are_those_of_the_bytes(self):
        lines = self.run_ok("checksum", self.right).splitlines()
        self.assertEqual(lines[0].split()[0], hashlib.sha256(self.right.read_bytes()).hexdigest())
        names = [line.split()[1] for line in lines[1:]]
        self.assertEqual(names, [f"layers/018/{name}" for name in ["q", "k", "v", "out", "lse"]])
        self.assertTrue(all(re.fullmatch("[0-9a-f]{64}", line.split()[0]) for line in lines))

    def test_files_that_are_no_captures_end_with_3(self):
        for verb in ["inspect", "verify", "checksum"]:
            self.refused(BAD_INPUT, [verb, "missing.h5"], "missing.h5 does not exist")
        (self.folder / "text.h5").write_text("not HDF5")
        self.refused(BAD_INPUT, ["inspect", "text.h5"], "is not an HDF5 file")
        self.refused(BAD_INPUT, ["import", "text.h5", "--out", "x.h5"], "text.h5")
        half = self.right.read_bytes()[: self.right.stat().st_size // 2]
        (self.folder / "half.h5").write_bytes(half)
        for words in [["inspect"], ["verify"], ["inspect", "--trusted"]]:
            result = self.refused(BAD_INPUT, [*words, "half.h5"], "half.h5", "truncated")
            self.assertEqual(result.stderr.count("quoka-capture:"), 1)

    def test_a_small_file_that_declares_terabytes_fails_at_once(self):
        path = self.make("terabytes")
        little_memory = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        for words in [["inspect"], ["verify"], ["inspect", "--trusted"]]:
            limit = None if "QUOKA_SANITIZED" in os.environ else little_memory
            result = self.run_program(*words, path, preexec_fn=limit, timeout=20)
            self.assertEqual(result.returncode, BAD_INPUT, result.stderr)
            self.assertIn("/layers/018/k", result.stderr)

    def write_safetensors(self, name, **changes):
        """One layer of one head, 2 tokens, in float32."""
        ids = struct.pack("<2i", 5, 6)
        tensors = {
            **{f"layers.000.{tensor}": ("F32", [1, 2, 1], struct.pack("<2f", 1, 2)) for tensor in "qkv"},
            "tokens.ids": ("I32", [2], ids),
            "tokens.positions": ("I32", [2], struct.pack("<2i", 0, 1)),
        }
        texts = """created_utc creator model_id model_revision model_type tokenizer_revision compute_dtype storage_dtype
            attn_implementation transformers_version torch_version device prompt_sha256 capture_id""".split()
        layer = {
            "layer_index": 0, "n_q_heads": 1, "n_kv_heads": 1, "k_head_dim": 1, "v_head_dim": 1, "softmax_scale": 0.5,
            "causal": 1, "q_offset": 0, "sliding_window": 0, "attention_chunk": 0, "logit_softcap": 0,
            "softcap_applied": 0, "has_sinks": 0, "alibi": 0, "alibi_scaled": 0, "position_kind": "rope",
            "qk_norm": "none", "kv_shared_from": -1, "v_equals_k_prefix": 0, "out_kind": "fp32_from_stored",
        }  # fmt: skip
        metadata = {
            **dict.fromkeys(texts, "unknown"), "format": "qkv-capture", "format_version": "1", "num_hidden_layers": "1",
            "stage": "post_norm_post_rope_pre_repeat_kv", "token_ids_sha256": hashlib.sha256(ids).hexdigest(),
            **{f"layers.000.{key}": str(value) for key, value in layer.items()}, **changes,
        }  # fmt: skip
        header, data = {"__metadata__": metadata}, b""
        for tensor, (dtype, shape, content) in tensors.items():
            offsets = [len(data), len(data) + len(content)]
            header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
            data += content
        text = json.dumps(header).encode()
        (self.folder / name).write_bytes(struct.pack("<Q", len(text)) + text + data)

    def test_safetensors_become_a_capture(self):
        self.write_safetensors("a.safetensors", model_id="mine")
        self.run_ok("import", "a.safetensors", "--out", "a.h5")
        self.assertIn("model mine", self.run_ok("inspect", "a.h5"))
        first = self.run_ok("checksum", "a.h5").splitlines()[1]
        self.assertEqual(first.split()[0], hashlib.sha256(struct.pack("<2f", 1, 2)).hexdigest())
        self.refused(USAGE, ["import", "a.safetensors", "--out", "a.h5"], "exists already")
        self.write_safetensors("b.safetensors", stage="pre_rope")
        self.refused(BAD_INPUT, ["import", "b.safetensors", "--out", "b.h5"], "'stage' is 'pre_rope'")
        self.assertFalse((self.folder / "b.h5").exists())

    def test_texts_of_a_file_cannot_control_the_terminal(self):
        self.write_safetensors("a.safetensors", model_id="r\u00e9\x1b[31m\x9b", stage="\x1b[2J")
        self.refused(BAD_INPUT, ["import", "a.safetensors", "--out", "a.h5"], "'\\x1b[2J'")
        self.write_safetensors("a.safetensors", model_id="r\u00e9\x1b[31m\x9b")
        self.run_ok("import", "a.safetensors", "--out", "a.h5")
        text = self.run_ok("inspect", "a.h5")
        self.assertIn("model r\u00e9\\x1b[31m\\xc2\\x9b ", text)
        self.assertNotIn("\x1b", text)

    def test_limits_come_from_the_command_line(self):
        self.refused(BAD_INPUT, ["inspect", self.right, "--max-bytes", "1000"], "more than 1000")
        self.refused(BAD_INPUT, ["verify", self.right, "--max-dim", "100"], "more than 100")
        self.refused(BAD_INPUT, ["inspect", "--trusted", self.right, "--max-dim", "100"], "more than 100")


if __name__ == "__main__":
    unittest.main()
