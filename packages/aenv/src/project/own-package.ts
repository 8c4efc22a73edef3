import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of this package. In the published package, this file is part of a chunk in `lib`. */
export const ownFolder = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../.." : "..", import.meta.url));

/** The fields of this package's package.json that commands use. */
export interface OwnPackage {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
}

export function ownPackage(): OwnPackage {
  return JSON.parse(readFileSync(join(ownFolder, "package.json"), "utf8"));
}
