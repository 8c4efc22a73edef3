export { domainLayouts } from "./domains.ts";
export { knownHashes, knownRevision } from "./known-hashes.ts";
export { type Prepared, type PrepareOptions, prepareData } from "./prepare.ts";
export type { ToolSchema } from "./schemas/tools.ts";
