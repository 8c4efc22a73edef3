import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { isTable } from "../fields/containers.ts";
import type { RewardMap } from "./metrics.ts";

const run = promisify(execFile);

const TIMEOUT_MS = 10 * 60_000;
const MAX_OUTPUT_BYTES = 1024 ** 2;

/** The program that runs scripts with the packages that they name. */
export const UV = "uv";

/** Whether this machine has a program. */
export async function hasProgram(program: string): Promise<boolean> {
  return run(program, ["--version"]).then(
    () => true,
    () => false,
  );
}

/** The answer of a metric's script, which is called with a file of rewards, one JSON object or `null` in a line. */
export async function scriptMetric(script: string, rewards: readonly (RewardMap | null)[], program = UV): Promise<Record<string, number>> {
  const folder = await mkdtemp(join(tmpdir(), "metric-"));
  try {
    const [input, output] = [join(folder, "rewards.jsonl"), join(folder, "metric.json")];
    await writeFile(input, rewards.map((one) => `${JSON.stringify(one)}\n`).join(""));
    await run(program, ["run", script, "-i", input, "-o", output], { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES });
    return numbersOf(JSON.parse(await readFile(output, "utf8")));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function numbersOf(answer: unknown): Record<string, number> {
  if (!isTable(answer)) throw new Error("its answer is not a JSON object");
  for (const [name, value] of Object.entries(answer))
    if (typeof value !== "number") throw new Error(`its answer has ${JSON.stringify(value)} as '${name}', which is not a number`);
  return answer as Record<string, number>;
}
