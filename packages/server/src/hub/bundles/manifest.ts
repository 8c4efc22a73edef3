import { invalidBundle } from "@aenv/contract";
import * as z from "zod";

const manifest = z.looseObject({
  format: z.literal(1),
  name: z.string(),
  version: z.string(),
  main: z.string(),
  files: z.array(z.looseObject({ path: z.string(), size: z.number(), sha256: z.string() })),
});

/** What a bundle says of itself: whose it is, what to start, and every other file it holds. */
export type Manifest = z.infer<typeof manifest>;

/** The manifest, if it is true: it names every file there is, with its size and sum, and no other. */
export function parseManifest(bytes: Uint8Array, files: ReadonlyMap<string, { size: number; sha256: string }>): Manifest {
  const claimed = read(bytes);
  const left = new Map(files);
  for (const { path, size, sha256 } of claimed.files) {
    const file = left.get(path);
    if (file === undefined) throw invalidBundle(`lacks ${JSON.stringify(path)}, which its manifest.json names`);
    if (file.size !== size || file.sha256 !== sha256)
      throw invalidBundle(`holds a ${JSON.stringify(path)} that is not what its manifest.json says`);
    left.delete(path);
  }
  const [extra] = left.keys();
  if (extra !== undefined) throw invalidBundle(`holds ${JSON.stringify(extra)}, which its manifest.json does not name`);
  if (!files.has(claimed.main)) throw invalidBundle(`lacks its main file, ${JSON.stringify(claimed.main)}`);
  return claimed;
}

function read(bytes: Uint8Array): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalidBundle("has a manifest.json that is not JSON");
  }
  const parsed = manifest.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalidBundle(`has a manifest.json of another shape: ${issue?.path.join(".") || "the file"}: ${issue?.message}`);
}
