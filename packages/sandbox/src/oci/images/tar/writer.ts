import { TAR_END, type TarEntry, tarEntryHeader, tarPaddingBytes } from "@aenv/contract";

/** Two blocks of zeros. */
export const END_OF_ARCHIVE = buffer(TAR_END);

export function tarHeader(entry: TarEntry): Buffer {
  return buffer(tarEntryHeader(entry));
}

export function padding(size: number): Buffer {
  return buffer(tarPaddingBytes(size));
}

function buffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
