import { readFileSync } from "node:fs";

/** What this package says of itself; it stands one folder up, in the repo as in what is published. */
export interface OwnPackage {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
}

export function ownPackage(): OwnPackage {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
}
