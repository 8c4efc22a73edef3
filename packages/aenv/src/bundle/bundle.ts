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
import type { TarEntry } from "./tar.ts";

/** A bundle's manifest.json, which also describes what the environment offers. */
export type Manifest = BundleManifest & Catalogue;

/** Bundles a project: code, data, config and a manifest. The same sources always give the same bytes. */
export async function bundleProject(project: Project, loading: LoadOptions): Promise<Archive & { manifest: Manifest }> {
  const { name, version } = project.config;
  const config = { ...project.config, main: ENVIRONMENT_FILE };
  const entries = [
    ...(await bundleCode(project)),
    ...readData(project),
    { path: "config.json", bytes: jsonBytes(config) },
    // Spares Node from guessing what kind of module each file is.
    { path: "package.json", bytes: jsonBytes({ name, private: true, type: "module" }) },
  ];
  const manifest: Manifest = {
    format: 1,
    name,
    version,
    main: "main.js",
    files: entries
      .map(({ path, bytes }) => ({ path, size: bytes.length, sha256: sha256(bytes) }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    ...(await tryOut(project, entries, loading)),
  };
  return { ...packArchive([...entries, { path: "manifest.json", bytes: jsonBytes(manifest) }]), manifest };
}

/** Loads the bundle as it will be loaded elsewhere: in an empty folder. */
async function tryOut(project: Project, entries: readonly TarEntry[], loading: LoadOptions): Promise<Catalogue> {
  const folder = mkdtempSync(join(tmpdir(), "aenv-bundle-"));
  try {
    await unpackArchive(packArchive(entries).bytes, folder);
    return await loadCatalogue(folder, loading);
  } catch (error) {
    // The sources would take as long to say the same.
    if (error instanceof Failure && error.code === LOAD_UNFINISHED) throw await locateErrors(project, error);
    // If the sources do not load either, their lines say more than the bundle's.
    await loadCatalogue(project.root, { ...loading, onOutput: () => undefined }).catch(async (cause: unknown) => {
      throw await locateErrors(project, toFailure(cause));
    });
    throw new Failure(`the project loads, but its bundle does not: ${(error as Error).message.replaceAll(folder, "<bundle>")}`, {
      code: "environment.invalid",
      hint: 'Files that the code reads must be named in config.json as "buildConfig": { "data": ["data"] }, and be found with dataPath("data/…").',
      cause: error,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function jsonBytes(value: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}
