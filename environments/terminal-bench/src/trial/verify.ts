import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { TrialFailure } from "./failure.ts";
import { runTests, type TestRun, type Verification } from "./run-tests.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { freshDirectory, quoted, realDirectory } from "./shell.ts";
import { keepBakedTests } from "./start.ts";
import { areTestsChanged, uploadTests } from "./tests.ts";

/** Verifies in the agent's sandbox: everything that the agent could have prepared is removed first. */
export async function verifyShared(run: TestRun, bakedTests: string | null): Promise<Verification> {
  const { sandbox, plan, settings } = run;
  // A user who is not root must be able to write the log and the reward.
  await clearForVerifier(sandbox, plan.user === "root" || plan.user === 0 ? "755" : "777");
  const hashes = await uploadTests(sandbox, plan, bakedTests);
  // Neither the tests nor what they wrote is there at the next step of the agent.
  const removeTests = () => sandbox.exec(`rm -rf /tests; ${freshDirectory("/logs/verifier", "777")}`, { user: "root", cwd: "/" });
  try {
    const verification = await runTests(run);
    const isTampered = await areTestsChanged(sandbox, hashes);
    if (isTampered && settings.isStrict) throw new TrialFailure("TestsTamperedError", "files in /tests changed while the tests ran");
    await removeTests();
    return { ...verification, isTampered };
  } catch (error) {
    // Where the agent has used up all processes, no command can be run, and the first failure is the one that counts.
    await removeTests().catch(() => {});
    throw error;
  }
}

/** Verifies in a sandbox of its own, which sees only the artifacts. Its image contains the tests, unless it is the agent's. */
export async function verifySeparate(run: TestRun, artifacts: readonly CollectedArtifact[]): Promise<Verification> {
  const { sandbox, plan } = run;
  await sandbox.exec(`${realDirectory("/logs")} && ${freshDirectory("/logs/verifier", "777")}`, { user: "root", cwd: "/" });
  for (const artifact of artifacts) await placeArtifact(sandbox, artifact);
  if (plan.environment?.hasTests === false) return verifyUploaded(run);
  const { exitCode } = await sandbox.exec("[ -f /tests/test.sh ] && chmod +x /tests/test.sh", { user: "root", cwd: "/" });
  if (exitCode !== 0) {
    throw new TrialFailure(
      "AddTestsDirError",
      "the verifier's image has no /tests/test.sh: copy it in tests/Dockerfile, or use an image that has it",
    );
  }
  return { ...(await runTests(run)), isTampered: false };
}

async function verifyUploaded(run: TestRun): Promise<Verification> {
  const { sandbox, plan } = run;
  const bakedTests = await keepBakedTests(sandbox);
  try {
    await uploadTests(sandbox, plan, bakedTests);
    return { ...(await runTests(run)), isTampered: false };
  } finally {
    if (bakedTests !== null) await rm(bakedTests, { recursive: true, force: true });
  }
}

/** Something that was collected: a file or a directory of the host, and its path in the agent's container. */
export interface CollectedArtifact {
  readonly path: string;
  readonly hostPath: string;
  readonly type: "file" | "directory";
}

async function placeArtifact(sandbox: TrialSandbox, { path, hostPath, type }: CollectedArtifact): Promise<void> {
  const target = type === "directory" ? path : posix.dirname(path);
  const clear = type === "directory" ? `rm -rf ${quoted(path)} && ` : "";
  await sandbox.exec(`${clear}mkdir -p ${quoted(target)}`, { user: "root", cwd: "/" });
  if (type === "directory") return sandbox.upload(hostPath, target);
  const folder = await mkdtemp(join(tmpdir(), "artifact-"));
  try {
    await cp(hostPath, join(folder, posix.basename(path)));
    await sandbox.upload(folder, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes what is left of the agent at the verifier's paths, also links that it put there. */
async function clearForVerifier(sandbox: TrialSandbox, mode: string): Promise<void> {
  const steps = [realDirectory("/logs"), freshDirectory("/logs/verifier", mode), "rm -rf /solution /oracle"];
  const { exitCode, output } = await sandbox.exec(steps.join(" && "), { user: "root", cwd: "/" });
  if (exitCode !== 0) throw new TrialFailure("AddTestsDirError", `/logs/verifier could not be cleared: ${output.trim()}`);
}
