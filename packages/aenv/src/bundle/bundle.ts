import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BundleManifest } from "@aenv/contract";
import type { Catalogue } from "../project/catalogue.ts";
import { LOAD_UNFINISHED } from "../project/load-errors.ts";
import { locateErrors } from "../project/locate-errors.ts";
import type { Project } from "../project/project.ts";
import { Failure, toFailure } from "../terminal/failure.ts";
import { type Archive, packArchive, sha256, unpackArchive } from "./archive.ts";
import { type LoadOptions, loadCatalogue } from "./catalogue.ts";
import { bundleCode, ENVIRONMENT_FILE } from "./code.ts";
import { readData } from "./data.ts";
import { readProjectFiles } from "./project-files.ts";
import type { TarEntry } from "./tar.ts";

/** A bundle's manifest.json, which also describes what the environment offers. */
export type Manifest = BundleManifest & Catalogue;

export interface ProjectBundle extends Archive {
  readonly manifest: Manifest;
  /** Files and folders of the project that are not in it; only for a project whose environment is a command. */
  readonly leftOut: readonly string[];
}

/** Bundles a project: code, data, config and a manifest. The same sources always give the same bytes. */
export async function bundleProject(project: Project, loading: LoadOptions): Promise<ProjectBundle> {
  if (project.config.runtime !== undefined) return bundleFiles(project);
  const { name } = project.config;
  const config = { ...project.config, main: ENVIRONMENT_FILE };
  const entries = [
    ...(await bundleCode(project)),
    ...readData(project),
    { path: "config.json", bytes: jsonBytes(config) },
    // Declares the module format, so that Node does not have to detect it for each file.
    { path: "package.json", bytes: jsonBytes({ name, private: true, type: "module" }) },
  ];
  const offer = await loadBundle(project, entries, loading);
  return { ...packEntries(project, entries, { main: "main.js", ...offer }), leftOut: [] };
}

/** The folder as it is. What the command offers is only known when it runs, and it may need an image for that. */
function bundleFiles(project: Project): ProjectBundle {
  const { entries, leftOut } = readProjectFiles(project);
  const all = [...entries, { path: "config.json", bytes: jsonBytes(project.config) }];
  return { ...packEntries(project, all, { tools: [], functions: [], rewards: [] }), leftOut };
}

function packEntries(
  { config: { name, version } }: Project,
  entries: readonly TarEntry[],
  { main, ...offer }: Catalogue & { main?: string },
): Archive & { manifest: Manifest } {
  const manifest: Manifest = {
    format: 1,
    name,
    version,
    ...(main !== undefined && { main }),
    files: entries
      .map(({ path, bytes }) => ({ path, size: bytes.length, sha256: sha256(bytes) }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    ...offer,
  };
  return { ...packArchive([...entries, { path: "manifest.json", bytes: jsonBytes(manifest) }]), manifest };
}

/** Loads the bundle in an empty folder, as a server will, and returns its catalogue. */
async function loadBundle(project: Project, entries: readonly TarEntry[], loading: LoadOptions): Promise<Catalogue> {
  const folder = mkdtempSync(join(tmpdir(), "aenv-bundle-"));
  try {
    await unpackArchive(packArchive(entries).bytes, folder);
    return await loadCatalogue(folder, loading);
  } catch (error) {
    // Loading the sources would take as long and fail in the same way.
    if (error instanceof Failure && error.code === LOAD_UNFINISHED) throw await locateErrors(project, error);
    // If the sources do not load either, the lines of the sources are more useful than those of the bundle.
    await loadCatalogue(project.root, { ...loading, onOutput: () => undefined }).catch(async (cause: unknown) => {
      throw await locateErrors(project, toFailure(cause));
    });
    throw new Failure(`the project loads, but its bundle does not: ${(error as Error).message.replaceAll(folder, "<bundle>")}`, {
      code: "environment.invalid",
      hint: 'Name files that the code reads in config.json as "buildConfig": { "data": ["data"] }, and open them with dataPath("data/…").',
      cause: error,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function jsonBytes(value: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}
