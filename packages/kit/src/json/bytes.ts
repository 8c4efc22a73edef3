import { types } from "node:util";
import type { ContentBlock } from "@aenv/contract";

export function isBytes(value: unknown): value is Uint8Array {
  return types.isUint8Array(value);
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Bytes as an MCP content block: an image if the format is one that models accept, else a resource. */
export function toBlock(bytes: Uint8Array): ContentBlock {
  const data = toBase64(bytes);
  const mimeType = imageTypeOf(bytes);
  if (mimeType !== null) return { type: "image", data, mimeType };
  return { type: "resource", resource: { uri: "aenv://tool-result", mimeType: "application/octet-stream", blob: data } };
}

/** Magic bytes of image formats; null matches any byte. */
const SIGNATURES: readonly (readonly [string, readonly (number | null)[]])[] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
];

function imageTypeOf(bytes: Uint8Array): string | null {
  const found = SIGNATURES.find(([, signature]) => signature.every((byte, at) => (byte === null ? at < bytes.length : bytes[at] === byte)));
  return found?.[0] ?? null;
}
