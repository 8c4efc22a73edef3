import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Target } from "../load/load.ts";
import { own } from "../processes/own.ts";
import { foreignCpuUs } from "../processes/usage.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** An environment bundled by `aenv build`, unpacked as in a sandbox. */
export interface Bundle extends AsyncDisposable {
  /** Starts it, and resolves when it has answered the first request: a health check, unless another is given. */
  start(firstRequest?: (url: string) => Promise<void>, variables?: Readonly<Record<string, string>>): Promise<StartedBundle>;
}

export interface StartedBundle extends Target, AsyncDisposable {
  readonly pid: number;
  /** Time from spawn to the first answer. */
  readonly startMs: number;
}

export async function buildBundle(project = join(root, "environments/echo")): Promise<Bundle> {
  const folder = await mkdtemp(join(tmpdir(), "aenv-bench-"));
  const run = promisify(execFile);
  const aenv = join(root, "packages/aenv/bin/aenv.js");
  const { stdout } = await run(process.execPath, [aenv, "build", "--work-dir", project, "--out", folder, "--json"]);
  const { archive, main } = JSON.parse(stdout) as { archive: string; main: string };
  await run("tar", ["-xzf", archive, "-C", folder]);
  return {
    start: (firstRequest = requestHealth, variables = {}) => start(join(folder, main), firstRequest, variables),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

async function start(
  file: string,
  firstRequest: (url: string) => Promise<void>,
  variables: Readonly<Record<string, string>>,
): Promise<StartedBundle> {
  const from = performance.now();
  const sandbox = spawn(process.execPath, [file, "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...variables },
  });
  const stop = own(sandbox);
  const [line] = await Promise.race([once(sandbox.stdout, "data"), once(sandbox, "exit")]);
  const url = /"url":"(.*?)"/.exec(String(line))?.[1];
  if (url === undefined) throw new Error(`the bundle did not start: ${line}`);
  await firstRequest(url);
  const startMs = performance.now() - from;
  const pid = sandbox.pid as number;
  return {
    url,
    pid,
    startMs,
    cpuUs: () => foreignCpuUs(pid),
    [Symbol.asyncDispose]: stop,
  };
}

function requestHealth(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    get(`${url}/health`, { agent: false }, (answer) => {
      answer.resume();
      answer.once("end", () => (answer.statusCode === 200 ? resolve() : reject(new Error(`/health answered ${answer.statusCode}`))));
    }).once("error", reject);
  });
}
