import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TAR_TYPES, type TarEntry } from "./tar-format.ts";
import { readTarEntries } from "./tar-reader.ts";
import { TAR_END, tarEntryHeader, tarPaddingBytes } from "./tar-writer.ts";

const name = fc
  .string({ unit: fc.integer({ min: 1, max: 255 }).map((code) => String.fromCharCode(code)), minLength: 1, maxLength: 300 })
  .filter((path) => !path.endsWith("/"));
const whole = (max: number) => fc.integer({ min: 0, max });
const entries: fc.Arbitrary<{ entry: TarEntry; content: Buffer }> = fc
  .record({
    path: name,
    type: fc.constantFrom(...(Object.keys(TAR_TYPES) as TarEntry["type"][])),
    linkPath: fc.oneof(fc.constant(""), name),
    mode: whole(0o7777),
    uid: whole(2 ** 32 - 1),
    gid: whole(2 ** 32 - 1),
    mtimeSeconds: whole(2 ** 32),
    major: whole(4095),
    minor: whole(255),
    attributes: fc.dictionary(fc.stringMatching(/^[a-z.]{1,9}$/), name, { noNullPrototype: true }),
    content: fc.uint8Array({ maxLength: 1500 }),
  })
  .map(({ content, ...rest }) => {
    const isDevice = rest.type === "character" || rest.type === "block";
    const bytes = Buffer.from(rest.type === "file" ? content : []);
    return { entry: { ...rest, size: bytes.length, major: isDevice ? rest.major : 0, minor: isDevice ? rest.minor : 0 }, content: bytes };
  });

describe("a tar archive", () => {
  it("is read as it was written, in chunks of any size", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(entries, { maxLength: 4 }), fc.integer({ min: 1, max: 2000 }), async (written, chunkSize) => {
        const archive = Buffer.concat([
          ...written.flatMap(({ entry, content }) => [tarEntryHeader(entry), content, tarPaddingBytes(content.length)]),
          TAR_END,
        ]);
        expect(await readAll(chunked(archive, chunkSize))).toEqual(written);
      }),
    );
  });

  it("that is damaged is refused or read, without another error", async () => {
    await fc.assert(
      fc.asyncProperty(
        entries,
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 5 }),
        fc.nat(),
        async ({ entry, content }, changes, length) => {
          const archive = Buffer.concat([tarEntryHeader(entry), content, tarPaddingBytes(content.length), TAR_END]);
          for (const [at, byte] of changes) archive[at % archive.length] = byte;
          await readAll(chunked(archive.subarray(0, length % archive.length), 512)).catch((error) =>
            expect(error.message).toMatch(/^the archive cannot be read: /),
          );
        },
      ),
    );
  });
});

async function readAll(source: AsyncIterable<Buffer>): Promise<{ entry: unknown; content: Buffer }[]> {
  const all: { entry: unknown; content: Buffer }[] = [];
  for await (const { entry, content } of readTarEntries(source)) all.push({ entry, content: await buffer(content) });
  return all;
}

async function* chunked(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
