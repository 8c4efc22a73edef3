import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { publish, startPlatform } from "aenvironment/platform-tests";
import { answerParent } from "../../processes/answer.ts";
import { cpuUs, foreignCpuUs, peakResidentBytes, usageAnswers } from "../../processes/usage.ts";

// node platform.ts <settings as JSON> [home]: the whole server, with SQLite in its home, a temporary folder by default.
const [settings = "{}", home] = process.argv.slice(2);
const flags = { logLevel: "warn", poolMin: 1, ...JSON.parse(settings) };
const platform = await startPlatform({ flags, ...(home !== undefined && { home }) });

// Sandboxes outlive a killed server, so on every signal it closes itself.
const leave = () => void platform.close().then(() => process.exit(0), fail);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, leave);
answerParent(
  {
    ...usageAnswers(platform.dataUrl),
    cpuUs: async () => {
      const workers = await Promise.all(platform.server.workerPids().map(foreignCpuUs));
      return workers.reduce((sum, one) => sum + one, cpuUs());
    },
    controlUrl: () => platform.controlUrl,
    publish: ({
      folder,
      ...options
    }: {
      folder: string;
      isolation: "shared" | "instance";
      deployConfig?: Readonly<Record<string, unknown>>;
      headers?: Readonly<Record<string, string>>;
    }) => publish(platform, folder, options),
    token: (owner: string) => platform.token(owner, "publisher", "trainer"),
    peakBytes: peakResidentBytes,
    sandboxes,
    close: () => platform.close(),
  },
  leave,
);

/** The processes that run environments or wait in the pool. */
function sandboxes(): number[] {
  const folder = join(platform.home, "sandboxes");
  const names = readdirSync(folder).filter((name) => !name.startsWith("."));
  return names.flatMap((name) => JSON.parse(readFileSync(join(folder, name, "sandbox.json"), "utf8")).process?.pid ?? []);
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
