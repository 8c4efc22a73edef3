import { createHash } from "node:crypto";

/** The seed of a child, in 31 bits. An episode of the parent with the same seed has children with the same seeds. */
export function childSeed(seed: number, name: string): number {
  return createHash("sha256").update(`${seed}/${name}`).digest().readUInt32BE(0) >>> 1;
}
