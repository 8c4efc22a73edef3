import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const command = fileURLToPath(new URL("../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url));

export interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly errorMessage?: string;
}

/** The suite's results by scenario. */
export type Findings = ReadonlyMap<string, readonly Check[]>;

/** The suite's server scenarios, each with the revisions it belongs to, or `extension`. */
export async function listScenarios(): Promise<ReadonlyMap<string, readonly string[]>> {
  const { output } = await run("list", "--server");
  const lines = [...output.matchAll(/^\s*- (\S+) \[(\S+)\]$/gm)];
  return new Map(lines.map(([, name = "", revisions = ""]) => [name, revisions.split(",")]));
}

/** Runs all scenarios of a revision against the server, or of all revisions if none is given. */
export async function runSuite(serverUrl: string, folder: string, revision?: string): Promise<Findings> {
  const only = revision === undefined ? [] : ["--spec-version", revision];
  const { output } = await run("server", "--url", `${serverUrl}/mcp`, "--suite", "all", "--output-dir", folder, ...only);
  const findings = new Map<string, readonly Check[]>();
  for (const entry of await readdir(folder).catch(() => [])) {
    // A folder is named after its scenario and the time it ran.
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)?.[1];
    if (scenario !== undefined) findings.set(scenario, JSON.parse(await readFile(join(folder, entry, "checks.json"), "utf8")));
  }
  if (findings.size === 0) throw new Error(`the conformance suite left no results:\n${output}`);
  return findings;
}

/** The suite exits with an error when a scenario fails; the tests evaluate the results. */
async function run(...args: readonly string[]): Promise<{ readonly output: string }> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [command, ...args], { timeout: 120_000, maxBuffer: 64 * 1024 * 1024 });
    return { output: stdout };
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    return { output: stdout + stderr };
  }
}
