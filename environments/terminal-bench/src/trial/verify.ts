import { rm } from "node:fs/promises";
import { posix } from "node:path";
import { TrialFailure } from "./failure.ts";
import { copiesOf } from "./files.ts";
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
export async function verifySeparate(run: TestRun, artifacts: readonly ForeignArtifact[]): Promise<Verification> {
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

/** A file or a directory of another sandbox, which the verifier has at the same path. */
export interface ForeignArtifact {
  readonly from: TrialSandbox;
  readonly path: string;
  readonly exclude: readonly string[];
}

/**
 * An artifact that does not exist, or is too large, is left out: with a file that has no end, an agent could keep its work from being
 * judged. One that cannot be copied for another reason is a failure of the verification: the tests would judge other work.
 */
async function placeArtifact(sandbox: TrialSandbox, { from, path, exclude }: ForeignArtifact): Promise<void> {
  const type = await from.kindOf(path);
  if (type === null) return;
  const folder = type === "directory" ? path : posix.dirname(path);
  const clear = type === "directory" ? `rm -rf ${quoted(path)} && ` : "";
  // Tests may run as any user, and write beside the artifact.
  const open = folder === "/" ? "" : ` && chmod a+rwx ${quoted(folder)}`;
  await sandbox.exec(`${clear}mkdir -p ${quoted(folder)}${open}`, { user: "root", cwd: "/" });
  let isTooLarge = false;
  const onTooLarge = () => {
    isTooLarge = true;
  };
  try {
    await sandbox.write(folder, copiesOf(from.read(path), type === "file" ? posix.basename(path) : "", exclude, onTooLarge));
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== "file.no_space") throw error;
    isTooLarge = true;
  }
  if (isTooLarge) await sandbox.exec(`rm -rf ${quoted(path)}`, { user: "root", cwd: "/" });
}

/** Removes what is left of the agent at the verifier's paths, also links that it put there. */
async function clearForVerifier(sandbox: TrialSandbox, mode: string): Promise<void> {
  const steps = [realDirectory("/logs"), freshDirectory("/logs/verifier", mode), "rm -rf /solution /oracle"];
  const { exitCode, output } = await sandbox.exec(steps.join(" && "), { user: "root", cwd: "/" });
  if (exitCode !== 0) throw new TrialFailure("AddTestsDirError", `/logs/verifier could not be cleared: ${output.trim()}`);
}
