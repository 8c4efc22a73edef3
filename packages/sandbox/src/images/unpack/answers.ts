import { formatBytes, PlatformError, parseBoundedJson } from "@aenv/contract";
import type { UnpackLimit } from "./limits.ts";
import { MAX_MESSAGE, type UnpackAnswer } from "./messages.ts";

/** Reads a line of the process that unpacks, which a layer may have taken over. */
export function parseAnswer(line: string): UnpackAnswer {
  try {
    // A line that is no object has no kind, or throws.
    const { kind, limit, value, code, message } = parseBoundedJson(line) as Record<string, unknown>;
    if (kind === "done") return { kind };
    if (kind === "limit" && isLimit(limit) && typeof value === "number" && Number.isSafeInteger(value)) return { kind, limit, value };
    if (kind === "error" && typeof message === "string")
      return {
        kind,
        code: code === "bundle.invalid" || code === "sandbox.unsupported" ? code : null,
        message: message.slice(0, MAX_MESSAGE),
      };
  } catch {
    // The same as another line.
  }
  return { kind: "error", code: "bundle.invalid", message: "the process that unpacks it gave no answer that can be read" };
}

function isLimit(name: unknown): name is UnpackLimit {
  return typeof name === "string" && Object.hasOwn(limitTexts, name);
}

export function describeLimit({ limit, value }: { readonly limit: UnpackLimit; readonly value: number }): string {
  return limitTexts[limit](value);
}

/** The error of an image that was not unpacked. */
export function refusal(image: string, diffId: string, answer: Exclude<UnpackAnswer, { kind: "done" }>): PlatformError {
  const where = `the image ${image} was not unpacked, because of its layer ${diffId}`;
  if (answer.kind === "error") return new PlatformError(answer.code ?? "sandbox.start_failed", `${where}: ${answer.message}`);
  const { limit } = answer;
  const code = limit === "freeDiskBytes" || limit === "freeFiles" ? "sandbox.no_capacity" : "bundle.invalid";
  return new PlatformError(code, `${where}: ${describeLimit(answer)}`);
}

const limitTexts: Readonly<Record<UnpackLimit, (value: number) => string>> = {
  imageBytes: (bytes) =>
    `the layers up to this one have more than ${formatBytes(bytes)} together, which is the server's setting imageBytes`,
  imageEntries: (count) =>
    `the layers up to this one have more than ${count} files, folders and links together, which is the server's setting imageEntries`,
  layerBytes: (bytes) => `it has more than ${formatBytes(bytes)}, which is half of the server's setting imageBytes`,
  layerEntries: (count) => `it has more than ${count} files, folders and links, which is half of the server's setting imageEntries`,
  layerTextBytes: (bytes) => `its paths and attributes have more than ${formatBytes(bytes)}, which is the limit of a layer`,
  pathBytes: (bytes) => `it has a path of more than ${bytes} bytes, which is the limit of Linux`,
  pathDepth: (count) => `it has a path of more than ${count} folders, which is the limit of a layer`,
  ratio: (ratio) => `it, or the image, is more than ${ratio} times as large as its compressed form, which is the limit`,
  freeDiskBytes: (bytes) =>
    `the server's disk has less than ${formatBytes(bytes)} left, which must stay free (setting minFreeDisk); free disk space, or remove images that are not needed`,
  freeFiles: (count) =>
    `the server's disk has room for less than ${count} more files, which must stay free; remove files that are not needed`,
};
