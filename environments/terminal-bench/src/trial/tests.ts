import { createHash } from "node:crypto";
import { cp, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { hashFiles } from "../checksum/files.ts";
import { TrialFailure } from "./failure.ts";
import type { VerifierPlan } from "./plan/plan.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { freshDirectory } from "./shell.ts";

/** Files that test suites write themselves; a change of them is not an attack. */
const CACHES = /(?:^|\/)(?:__pycache__|\.pytest_cache)(?:\/|$)/;

/** Longer files of theirs are not passed over. */
const MAX_CACHE_BYTES = 64 * 1024 ** 2;

/** The uploaded tests by path. */
export type TestHashes = ReadonlyMap<string, { readonly size: number; readonly sha256: string }>;

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
    const sent = new Map<string, { size: number; sha256: string }>();
    for (const { path, sha256 } of await hashFiles(folder)) sent.set(path, { size: (await stat(join(folder, path))).size, sha256 });
    const difference = await firstDifference(sandbox, sent);
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
  return (await firstDifference(sandbox, before)) !== null;
}

/** Reads no file that was not sent, or that has another size: whoever has written it could have made it endless. */
async function firstDifference(sandbox: TrialSandbox, sent: TestHashes): Promise<string | null> {
  const missing = new Set([...sent.keys()].filter((path) => !CACHES.test(path)));
  for await (const { path, type, size, content } of sandbox.read("/tests")) {
    if (type !== "file") continue;
    if (CACHES.test(path) && size <= MAX_CACHE_BYTES) continue;
    const expected = sent.get(path);
    if (expected?.size !== size || (await hashOf(content)) !== expected.sha256) return path;
    missing.delete(path);
  }
  return [...missing][0] ?? null;
}

async function hashOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const part of content) hash.update(part);
  return hash.digest("hex");
}
