import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { hashFiles, sha256 } from "../checksum/files.ts";
import { TrialFailure } from "./failure.ts";
import type { VerifierPlan } from "./plan/plan.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { freshDirectory } from "./shell.ts";

/** Files that test suites write themselves; a change of them is not an attack. */
const CACHES = /(?:^|\/)(?:__pycache__|\.pytest_cache)(?:\/|$)/;

/** Hashes of the uploaded tests by path. */
export type TestHashes = ReadonlyMap<string, string>;

/** Puts the tests into a new `/tests` that belongs to root, and checks that what arrived is what was sent. */
export async function uploadTests(sandbox: TrialSandbox, plan: VerifierPlan, bakedFolder: string | null): Promise<TestHashes> {
  const folder = await mkdtemp(join(tmpdir(), "tests-"));
  try {
    if (bakedFolder !== null) await cp(bakedFolder, folder, { recursive: true });
    if (plan.extraScript !== null) await cp(plan.extraScript, join(folder, basename(plan.extraScript)));
    const filter = (path: string) => !plan.isIgnored(path);
    for (const tests of plan.testFolders) await cp(tests, folder, { recursive: true, dereference: true, filter });
    await sandbox.exec(freshDirectory("/tests", "755"), { user: "root", cwd: "/" });
    await sandbox.upload(folder, "/tests");
    await sandbox.exec(
      "chown -R 0:0 /tests && chmod -R u=rwX,go=rX /tests && for script in /tests/test.sh /tests/run-tests.sh; do [ ! -f $script ] || chmod 755 $script; done",
      { user: "root", cwd: "/" },
    );
    const sent = new Map((await hashFiles(folder)).map((file) => [file.path, file.sha256]));
    const difference = firstDifference(sent, await hashTests(sandbox));
    if (difference !== null) throw new TrialFailure("TestsTamperedError", `/tests/${difference} is not the file that was uploaded`);
    return sent;
  } catch (error) {
    if (error instanceof TrialFailure) throw error;
    throw new TrialFailure("AddTestsDirError", "the tests could not be copied into the sandbox", { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Whether a test file was changed, removed or added while the tests ran. */
export async function areTestsChanged(sandbox: TrialSandbox, before: TestHashes): Promise<boolean> {
  return firstDifference(before, await hashTests(sandbox)) !== null;
}

async function hashTests(sandbox: TrialSandbox): Promise<TestHashes> {
  return new Map((await sandbox.download("/tests")).map(({ path, content }) => [path, sha256(content)]));
}

function firstDifference(a: TestHashes, b: TestHashes): string | null {
  for (const path of new Set([...a.keys(), ...b.keys()])) if (!CACHES.test(path) && a.get(path) !== b.get(path)) return path;
  return null;
}
