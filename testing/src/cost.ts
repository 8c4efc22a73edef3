import { readFileSync } from "node:fs";
import { afterAll } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    /** Processor time of a test file: its imports, its tests, and the programs that it started and waited for. */
    processorSeconds?: number;
  }
}

const before = processorSeconds();

// biome-ignore lint/correctness/noEmptyPattern: Vitest reads the pattern, and allows no name.
afterAll(({}, file) => {
  file.meta.processorSeconds = processorSeconds() - before;
});

function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + secondsOfChildren();
}

/** Linux counts the processor time of ended children in hundredths of a second. Elsewhere it is not known. */
function secondsOfChildren(): number {
  if (process.platform !== "linux") return 0;
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / 100;
}
