import type { BuiltIns } from "@aenv/server";
import { findBuiltIn } from "../project/benchmarks.ts";
import { type Project, readProject, withName } from "../project/project.ts";

/** Long enough for the largest of them on a busy machine. */
const LOAD_TIMEOUT_MS = 60_000;

/** The environments of this package, by their names and those of their folders. They are bundled when they are asked for. */
export function builtIns(): BuiltIns {
  const projectOf = (name: string): Project | null => {
    const folder = findBuiltIn(name);
    return folder === null ? null : withName(readProject(folder, folder), name);
  };
  return {
    versionOf: (name) => projectOf(name)?.config.version ?? null,
    bundle: async (name) => {
      const project = projectOf(name);
      if (project === null) throw new Error(`there is no built-in environment '${name}'`);
      // Loaded only here: the bundler takes longer to load than the rest of the server.
      const { bundleProject } = await import("../bundle/bundle.ts");
      const { digest, bytes } = await bundleProject(project, { timeoutMs: LOAD_TIMEOUT_MS, onOutput: () => {} });
      return { config: project.config, digest: `sha256:${digest}`, bytes };
    },
  };
}
