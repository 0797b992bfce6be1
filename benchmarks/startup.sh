#!/usr/bin/env bash
# Cold start of the commands people wait for: `halo --version`, `halo check`, `halo run` of a scripted program.
# Every measurement is a new process. Prints one JSON object, milliseconds: median, min, max.
#   benchmarks/startup.sh [RUNS]        HALO=path/to/halo to measure another installation
set -euo pipefail
unset PYTHONDONTWRITEBYTECODE # an installed Halo is compiled once; starting without that is another measurement

runs=${1:-20}
halo=$(command -v "${HALO:-halo}") || { echo "startup.sh: no halo command on PATH; set HALO=path/to/halo" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat > p.halo <<'PROGRAM'
agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text
    |> Bot.extract()
    |> Bot.check()
    |> Bot.answer()
PROGRAM
echo '{"*": "ok"}' > r.json

python3 - "$halo" "$runs" <<'MEASURE'
import json, os, statistics, subprocess, sys, time

halo, runs = sys.argv[1], int(sys.argv[2])
interpreter = open(halo).readline().removeprefix("#!").strip()
commands = {
    "version": [halo, "--version"],
    "check": [halo, "check", "p.halo"],
    "run": [halo, "run", "p.halo", "-i", "text=x", "--replies", "r.json", "--json"],
    "python": [interpreter, "-c", "pass"],
}

def once(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000

times = {name: [] for name in commands}
for number in range(runs + 1):  # the first round fills the disk's cache and the compiled files
    for name, command in commands.items():
        elapsed = once(command)
        if number:
            times[name].append(elapsed)
figures = {
    name: {"median": round(statistics.median(values), 1), "min": round(min(values), 1), "max": round(max(values), 1)}
    for name, values in times.items()
}
print(json.dumps({"benchmark": "startup", "runs": runs, "cores": os.cpu_count(), "milliseconds": figures}, indent=2))
MEASURE
