import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { applyEdits, type ModificationOptions, modify } from "jsonc-parser";

/** What a build has to say in config.json. */
export interface ImageFacts {
  readonly image: string;
  /** The port of its server; null to leave that of config.json as it is. */
  readonly port: number | null;
}

/** config.json with the image as its `image` artifact. Everything else of the text stays as it is. */
export function withImageArtifact(text: string, { image, port }: ImageFacts): string {
  const { artifacts = [] } = JSON.parse(text) as { artifacts?: readonly { readonly type: string }[] };
  const indent = /^[ \t]+(?=")/m.exec(text)?.[0] ?? "  ";
  const formattingOptions = { insertSpaces: !indent.startsWith("\t"), tabSize: indent.startsWith("\t") ? 1 : indent.length };
  const options: ModificationOptions = { formattingOptions };
  const at = artifacts.findIndex(({ type }) => type === "image");
  const edits =
    at >= 0
      ? modify(text, ["artifacts", at, "content"], image, options)
      : modify(text, ["artifacts"], [...artifacts, { id: "", type: "image", content: image }], options);
  const named = applyEdits(text, edits);
  return port === null ? named : applyEdits(named, modify(named, ["deployConfig", "port"], port, options));
}

/** Renamed when it is complete: another command may read it at the same time. */
export function writeImageArtifact(file: string, facts: ImageFacts): void {
  const text = readFileSync(file, "utf8");
  const changed = withImageArtifact(text, facts);
  if (changed === text) return;
  const part = `${file}.${process.pid}`;
  writeFileSync(part, changed);
  renameSync(part, file);
}
