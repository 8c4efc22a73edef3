import { Readable } from "node:stream";
import { gunzipSync } from "node:zlib";
import { latin1Bytes, readTarEntries } from "@aenv/benchmark";
import { decodePath, readBoundedBytes } from "@aenv/kit";

export interface ArchivedFile {
  path: string;
  content: Buffer;
}

const MAX_UNPACKED_BYTES = 2 ** 30;

/** The regular files of a .tar.gz archive. */
export async function* readArchive(bytes: Buffer, from = "the archive"): AsyncGenerator<ArchivedFile> {
  const tar = unzip(bytes, from);
  const fail = (problem: string) => new Error(`${from} cannot be read: it ${problem}; download it again`);
  for await (const { entry, content } of readTarEntries(Readable.from([tar]), { fail })) {
    const path = decodePath(latin1Bytes(entry.path));
    if (path.split("/").includes("..")) throw new Error(`${from} contains ${path}, which leads out of it; nothing was read`);
    if (entry.type !== "file") continue;
    yield { path: path.replace(/^\.\//, ""), content: Buffer.from(await readBoundedBytes(content, { maxBytes: MAX_UNPACKED_BYTES })) };
  }
}

function unzip(bytes: Buffer, from: string): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (cause) {
    throw new Error(`${from} is not a .tar.gz archive: ${(cause as Error).message}`, { cause });
  }
}
