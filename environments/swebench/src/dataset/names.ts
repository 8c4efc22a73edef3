const HUB_NAMES: Readonly<Record<string, string>> = {
  "swe-bench": "SWE-bench/SWE-bench",
  swebench: "SWE-bench/SWE-bench",
  swe_bench: "SWE-bench/SWE-bench",
  "swe-bench-lite": "SWE-bench/SWE-bench_Lite",
  "swebench-lite": "SWE-bench/SWE-bench_Lite",
  swe_bench_lite: "SWE-bench/SWE-bench_Lite",
  "swe-bench_lite": "SWE-bench/SWE-bench_Lite",
  lite: "SWE-bench/SWE-bench_Lite",
};

const COMMAND_NAMES: Readonly<Record<string, string>> = {
  full: "SWE-bench/SWE-bench",
  verified: "SWE-bench/SWE-bench_Verified",
  multilingual: "SWE-bench/SWE-bench_Multilingual",
  multimodal: "SWE-bench/SWE-bench_Multimodal",
};

/** The short names of datasets, as the command accepts them and as the loader accepts them. Other names stay as they are. */
export function datasetName(given: string): string {
  const short = given.trim().toLowerCase();
  const name = Object.hasOwn(COMMAND_NAMES, short) ? (COMMAND_NAMES[short] ?? given) : given;
  const key = name.toLowerCase();
  return Object.hasOwn(HUB_NAMES, key) ? (HUB_NAMES[key] ?? name) : name;
}
