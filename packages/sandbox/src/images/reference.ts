import { PlatformError } from "@aenv/contract";

/** Where an image is. */
export type ImageReference =
  | {
      readonly from: "registry";
      readonly registry: string;
      readonly repository: string;
      readonly tag: string | null;
      readonly digest: string | null;
    }
  /** An image of the local Docker engine, by name or id. */
  | { readonly from: "docker-daemon"; readonly name: string }
  /** A folder with an OCI layout; `name` selects one of several images in it. */
  | { readonly from: "oci"; readonly path: string; readonly name: string | null }
  /** A file written by `docker save`. */
  | { readonly from: "docker-archive"; readonly path: string; readonly name: string | null };

const DEFAULT_REGISTRY = "docker.io";

const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*$/;
const REGISTRY = /^(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::[0-9]{1,5})?$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const DAEMON_NAME = /^[A-Za-z0-9[][A-Za-z0-9_.:/@[\]-]{0,511}$/;

/** Parses `registry:5000/ns/name:tag@sha256:…`, `docker-daemon:NAME`, `oci:PATH[:NAME]` and `docker-archive:PATH[:NAME]`. */
export function parseReference(text: string): ImageReference {
  const [, scheme, rest = ""] = /^(docker-daemon|oci|docker-archive):(.*)$/s.exec(text) ?? [];
  // `oci:5000/name` is a registry on a host called oci: a path begins with / or a dot.
  const isPath = /^\.{0,2}\//.test(rest);
  if (scheme === "docker-daemon") {
    if (!DAEMON_NAME.test(rest)) throw invalid(text, `'${rest}' is not a name or id of an image`);
    return { from: scheme, name: rest };
  }
  if ((scheme === "oci" || scheme === "docker-archive") && isPath) return { from: scheme, ...pathAndName(text, rest) };
  if (scheme === "docker-archive") throw invalid(text, "the path must begin with '/', './' or '../'");
  return parseRegistry(text);
}

/** Whether engines read it as the name of an image in a registry. */
export function isRegistryReference(text: string): boolean {
  try {
    return parseReference(text).from === "registry";
  } catch {
    return false;
  }
}

/** The full name of an image in a registry. Throws for what is no such name. */
export function imageName(text: string): string {
  const reference = parseReference(text);
  if (reference.from === "registry") return formatReference(reference);
  throw new PlatformError("request.invalid", `'${text}' is a place of an image and not a name, such as my-env:1.0.0`);
}

/** The same for references that mean the same. `parseReference` reads it back. */
export function formatReference(reference: ImageReference): string {
  if (reference.from === "docker-daemon") return `docker-daemon:${reference.name}`;
  if (reference.from === "registry") {
    const { registry, repository, tag, digest } = reference;
    return `${registry}/${repository}${tag === null ? "" : `:${tag}`}${digest === null ? "" : `@${digest}`}`;
  }
  return `${reference.from}:${reference.path}${reference.name === null ? "" : `:${reference.name}`}`;
}

/** The argument of skopeo. It begins with a transport, so it cannot be taken for an option. */
export function skopeoSource(reference: ImageReference): string {
  if (reference.from !== "registry") return formatReference(reference);
  // The digest determines the image; skopeo refuses a tag beside it.
  return `docker://${formatReference(reference.digest === null ? reference : { ...reference, tag: null })}`;
}

export function isDigest(text: unknown): text is string {
  return typeof text === "string" && DIGEST.test(text);
}

function parseRegistry(text: string): ImageReference {
  const [name = "", digest = null, ...more] = text.replace(/^docker:\/\//, "").split("@");
  if (more.length > 0) throw invalid(text, "it has more than one '@'");
  if (digest !== null && !DIGEST.test(digest))
    throw invalid(text, `'${digest}' is not a digest, which is sha256: and 64 hexadecimal digits`);
  const [, path = "", tag = null] = /^(.*?)(?::([^/:]*))?$/s.exec(name) ?? [];
  if (tag !== null && !TAG.test(tag)) throw invalid(text, `'${tag}' is not a tag`);
  const [first = "", ...others] = path.split("/");
  const hasRegistry = others.length > 0 && (/[.:[A-Z]/.test(first) || first === "localhost");
  const registry = hasRegistry ? first : DEFAULT_REGISTRY;
  const named = hasRegistry ? others.join("/") : path;
  const repository = registry === DEFAULT_REGISTRY && !named.includes("/") ? `library/${named}` : named;
  if (!REGISTRY.test(registry)) throw invalid(text, `'${registry}' is not a host name, or host name and port, of a registry`);
  if (!REPOSITORY.test(repository))
    throw invalid(text, `'${named}' is not a repository; it has lower-case letters, digits, and single '.', '_', '-' and '/' between them`);
  return { from: "registry", registry, repository, tag: tag ?? (digest === null ? "latest" : null), digest };
}

function pathAndName(text: string, rest: string): { path: string; name: string | null } {
  const [, path = "", name = null] = /^([^:]*)(?::(.+))?$/s.exec(rest) ?? [];
  if (path === "" || path.includes("\0")) throw invalid(text, "its path is empty, or has a ':' or a zero byte");
  return { path, name };
}

function invalid(text: string, problem: string): PlatformError {
  return new PlatformError(
    "request.invalid",
    `'${text}' is not a reference of an image: ${problem}. Examples: python:3.12, registry:5000/team/name@sha256:…, oci:/path`,
  );
}
