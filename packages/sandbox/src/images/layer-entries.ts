import { readTarEntries, type TarEntry } from "@aenv/contract";
import { invalidLayer } from "./unpack/limits.ts";

/** An entry, and its content, which is read before the next entry. */
export interface TarItem {
  readonly entry: TarEntry;
  readonly content: AsyncIterable<Uint8Array>;
}

const fail = (problem: string) => invalidLayer(`the archive cannot be read: it ${problem}`);

/** Reads the archives of layers. Refuses sparse files and unknown types. */
export async function* readTar(source: AsyncIterable<Uint8Array>, onExtension?: (bytes: number) => void): AsyncGenerator<TarItem> {
  for await (const { entry, content } of readTarEntries(source, { fail, onExtension })) {
    const { type, ...rest } = entry;
    if (type === "other") throw fail(`has '${entry.path}', a sparse file or one of an unknown type, which is not supported`);
    yield { entry: { ...rest, type }, content };
  }
}
