import { PlatformError } from "@aenv/contract";
import { isRegistryReference } from "@aenv/sandbox";

const DEFAULT_PREFIX = "docker.io/library/aenv:";

/**
 * The image that an instance's `datasource` names. A full image name is used as it is; a key is appended to the prefix, with a ':'
 * between them unless the prefix ends in a separator.
 */
export function imageOf(datasource: string, imagePrefix: string | undefined): string {
  const image = compose(datasource, imagePrefix ?? "");
  if (isImageReference(image)) return image;
  const from = imagePrefix ? ` with the imagePrefix '${imagePrefix}'` : "";
  throw new PlatformError("request.invalid", `the datasource '${datasource}'${from} gives '${image}', which is not an image name`, {
    details: { datasource, imagePrefix, image },
  });
}

function compose(datasource: string, prefix: string): string {
  if (prefix === "") return isFullName(datasource) ? datasource : DEFAULT_PREFIX + datasource;
  if (/^[:/@]/.test(datasource)) return prefix + datasource;
  if (isFullName(datasource)) return datasource;
  return /[:/@-]$/.test(prefix) ? prefix + datasource : `${prefix}:${datasource}`;
}

function isFullName(datasource: string): boolean {
  return /[:/@]/.test(datasource);
}

// The grammar of an image reference: [host[:port]/]path[:tag][@digest].
const HOST = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::\d{1,5})?$/;
const PART = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const IMAGE_DIGEST = /^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-fA-F]{32,}$/;
const MAX_LENGTH = 512;

/** Whether it names an image in a registry. Images of the server's Docker and files of its machine are not for publishers and callers. */
export function isImageReference(text: string): boolean {
  // `docker-daemon:name` has the form of a name with a tag, but engines read it otherwise.
  if (text.length > MAX_LENGTH || !isRegistryReference(text)) return false;
  const [rest = "", digest, ...more] = text.split("@");
  if (more.length > 0 || (digest !== undefined && !IMAGE_DIGEST.test(digest))) return false;
  const slash = rest.lastIndexOf("/");
  const colon = rest.indexOf(":", slash + 1);
  if (colon >= 0 && !TAG.test(rest.slice(colon + 1))) return false;
  const [first = "", ...parts] = (colon < 0 ? rest : rest.slice(0, colon)).split("/");
  // As docker does: a first part is a host only if it looks like one.
  const isHost = parts.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost ? HOST.test(first) && parts.every((part) => PART.test(part)) : [first, ...parts].every((part) => PART.test(part));
}
