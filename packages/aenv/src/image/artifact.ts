import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { applyEdits, type ModificationOptions, modify } from "jsonc-parser";

/** config.json with the image as its `image` artifact. Everything else of the text stays as it is. */
export function withImageArtifact(text: string, image: string): string {
  const { artifacts = [] } = JSON.parse(text) as { artifacts?: readonly { readonly type: string }[] };
  const indent = /^[ \t]+(?=")/m.exec(text)?.[0] ?? "  ";
  const formattingOptions = { insertSpaces: !indent.startsWith("\t"), tabSize: indent.startsWith("\t") ? 1 : indent.length };
  const options: ModificationOptions = { formattingOptions };
  const at = artifacts.findIndex(({ type }) => type === "image");
  const edits =
    at >= 0
      ? modify(text, ["artifacts", at, "content"], image, options)
      : modify(text, ["artifacts"], [...artifacts, { id: "", type: "image", content: image }], options);
  return applyEdits(text, edits);
}

/** Renamed when it is complete: another command may read it at the same time. */
export function writeImageArtifact(file: string, image: string): void {
  const text = readFileSync(file, "utf8");
  const changed = withImageArtifact(text, image);
  if (changed === text) return;
  const part = `${file}.${process.pid}`;
  writeFileSync(part, changed);
  renameSync(part, file);
}
