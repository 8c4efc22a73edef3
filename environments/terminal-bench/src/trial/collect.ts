import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CollectHook } from "../task/config/phases.ts";
import { readFiles } from "./files.ts";
import { type OutputFolder, writeFiles } from "./folder.ts";
import { type ArtifactStatus, guessedType, type ManifestEntry, manifestEntry, type PlannedArtifact } from "./plan/artifacts.ts";
import type { StepPlan } from "./plan/plan.ts";
import type { TrialSandbox } from "./sandbox.ts";

/** The services of a compose task by name; `main` is the agent's container. */
export type Services = (service: string) => TrialSandbox | null;

/** Copies logs and artifacts out of the sandbox, before the verifier runs. */
export async function collect(plan: StepPlan, services: Services, output: OutputFolder): Promise<readonly ManifestEntry[]> {
  await collectAgentLogs(services, output).catch(() => null);
  await runCollectHooks(plan.collect, services);
  return collectArtifacts(plan.artifacts, services, output);
}

async function collectAgentLogs(services: Services, output: OutputFolder): Promise<void> {
  const agent = services("main");
  if (agent !== null) await writeFiles(output.agent, await readFiles(agent, "/logs/agent"));
}

/** Runs the hooks of the agent's container, then of the other services. A hook that fails changes nothing. */
async function runCollectHooks(hooks: readonly CollectHook[], services: Services): Promise<void> {
  const ordered = [...hooks.filter(({ service }) => service === "main"), ...hooks.filter(({ service }) => service !== "main")];
  for (const { command, service, timeout_sec, user } of ordered) {
    await services(service)
      ?.exec(command, { user, timeoutMs: timeout_sec * 1000 })
      .catch(() => null);
  }
}

/** Collects artifacts and writes the manifest. Every entry is best effort: none fails the trial. */
async function collectArtifacts(artifacts: readonly PlannedArtifact[], services: Services, output: OutputFolder): Promise<ManifestEntry[]> {
  const manifest: ManifestEntry[] = [];
  for (const artifact of artifacts) manifest.push(await collectArtifact(artifact, services, output));
  await writeFile(join(output.artifacts, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

async function collectArtifact(artifact: PlannedArtifact, services: Services, output: OutputFolder): Promise<ManifestEntry> {
  const entry = (type: ManifestEntry["type"], status: ArtifactStatus): ManifestEntry => manifestEntry(artifact, type, status);
  const sandbox = services(artifact.service ?? "main");
  if (artifact.isSkipped || sandbox === null) return entry(guessedType(artifact.source), artifact.isSkipped ? "skipped" : "failed");
  let type = guessedType(artifact.source);
  try {
    const found = await sandbox.kindOf(artifact.source);
    if (found === null) return entry(type, "failed");
    type = found;
    const files = await readFiles(sandbox, artifact.source, artifact.exclude);
    if (type === "directory" && files.length === 0) return entry(type, "empty");
    const target = join(output.artifacts, artifact.hostPath);
    if (type === "directory") await writeFiles(target, files);
    else
      await writeFiles(
        output.artifacts,
        files.map((file) => ({ ...file, path: artifact.hostPath })),
      );
    return entry(type, "ok");
  } catch {
    return entry(type, "failed");
  }
}
