#!/usr/bin/env bash
# What `pip install .` costs: megabytes and distributions of a fresh virtual environment, pip and setuptools apart.
# Fails above the budget, and when the bare installation does not work. Prints one JSON object.
#   benchmarks/install_budget.sh
set -euo pipefail

max_megabytes=60
max_distributions=35
top=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"${PYTHON:-python3}" -m venv "$folder/venv"
bin=$folder/venv/bin
"$bin/python" -m pip install -qq --disable-pip-version-check "$top"

"$bin/python" - "$max_megabytes" "$max_distributions" <<'COUNT'
import importlib.metadata, json, pathlib, sys, sysconfig

tools = {"pip", "setuptools", "wheel"}
found = {d.metadata["Name"].lower(): d for d in importlib.metadata.distributions()}
counted = {name: d for name, d in found.items() if name not in tools}
root = pathlib.Path(sysconfig.get_path("purelib"))
ignored = {root / name for name in ("pip", "setuptools", "pkg_resources", "_distutils_hack")}
size = sum(p.stat().st_size for p in root.rglob("*") if p.is_file() and not ignored.intersection(p.parents))
megabytes, limits = round(size / 1e6, 1), [int(n) for n in sys.argv[1:]]
print(json.dumps({"benchmark": "install_budget", "megabytes": megabytes, "distributions": len(counted)}))
if megabytes > limits[0] or len(counted) > limits[1]:
    sys.exit(f"install budget exceeded: at most {limits[0]} MB and {limits[1]} distributions; {sorted(counted)}")
COUNT

cd "$folder"
"$bin/halo" --version > /dev/null
"$bin/halo" demo < /dev/null > /dev/null
