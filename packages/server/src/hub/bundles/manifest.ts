import { type BundleManifest, bundleManifest, invalidBundle, parseBoundedJson } from "@aenv/contract";

/** Parses a manifest and checks it against the unpacked files: it lists each of them with its size and digest, and no others. */
export function parseManifest(bytes: Uint8Array, files: ReadonlyMap<string, { size: number; sha256: string }>): BundleManifest {
  const manifest = read(bytes);
  const unlisted = new Map(files);
  for (const { path, size, sha256 } of manifest.files) {
    const file = unlisted.get(path);
    if (file === undefined) throw invalidBundle(`lacks ${JSON.stringify(path)}, which its manifest.json lists`);
    if (file.size !== size || file.sha256 !== sha256)
      throw invalidBundle(`holds a ${JSON.stringify(path)} that differs from its entry in manifest.json`);
    unlisted.delete(path);
  }
  const [extra] = unlisted.keys();
  if (extra !== undefined) throw invalidBundle(`holds ${JSON.stringify(extra)}, which its manifest.json does not list`);
  if (manifest.main !== undefined && !files.has(manifest.main))
    throw invalidBundle(`lacks its main file, ${JSON.stringify(manifest.main)}`);
  return manifest;
}

function read(bytes: Uint8Array): BundleManifest {
  let value: unknown;
  try {
    value = parseBoundedJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalidBundle("has a manifest.json that is not JSON");
  }
  const parsed = bundleManifest.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalidBundle(`has an invalid manifest.json: ${issue?.path.join(".") || "the file"}: ${issue?.message}`);
}
