import { statSync } from "node:fs";
import { resolve } from "node:path";
import { Failure } from "../terminal/failure.ts";

/** Where an image is loaded from. */
export interface LoadSource {
  /** As image stores read it: `docker-daemon:NAME`, `oci:PATH[:NAME]` or `docker-archive:PATH[:NAME]`. */
  readonly source: string;
  /** The name that the image has there; null if it is not written. */
  readonly name: string | null;
}

/** An image of the Docker daemon, a folder with an OCI layout, or an archive of `docker save`, with or without a prefix that says which. */
export function loadSource(text: string, cwd: string): LoadSource {
  const [, kind, rest = ""] = /^(docker-daemon|oci|docker-archive):(.*)$/s.exec(text) ?? [];
  if (kind === "docker-daemon") return { source: text, name: rest };
  return fileSource(kind === undefined ? text : rest, cwd);
}

/** `PATH[:NAME]` of a folder or an archive; `NAME` selects one of several images in it. */
export function fileSource(text: string, cwd: string): LoadSource {
  const [, file = "", name] = /^([^:]*)(?::(.*))?$/s.exec(resolve(cwd, text)) ?? [];
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined)
    throw new Failure(`there is no ${file}`, {
      exit: "usage",
      hint: "Give an archive of docker save, a folder with an OCI layout, or docker-daemon:NAME.",
    });
  const source = `${found.isDirectory() ? "oci" : "docker-archive"}:${file}`;
  return { source: name === undefined ? source : `${source}:${name}`, name: name ?? null };
}
