import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, totalmem } from "node:os";
import type { Outcome } from "./suite.ts";

export async function saveResults(folder: URL, suite: string, { startedAt, loadAverage, rows, leftOut }: Outcome): Promise<void> {
  await mkdir(folder, { recursive: true });
  const content = { suite, date: startedAt.toISOString(), machine: { ...thisMachine(), loadAverage }, rows, leftOut };
  await writeFile(new URL(`${suite}.json`, folder), `${JSON.stringify(content, null, 2)}\n`);
}

/** The machine of the measurement, without which the numbers mean nothing. */
function thisMachine() {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryMb: Math.round(totalmem() / 2 ** 20),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
  };
}
