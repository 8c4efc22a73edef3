import { isDigits } from "@aenv/benchmark";
import { parsePackageName } from "../task/config/config.ts";

export interface PackageReference {
  /** `org/name`. */
  readonly name: string;
  /** As it was written; empty in `org/name@`. */
  readonly ref: string;
  readonly type: "tag" | "revision" | "digest";
  /** What is looked up. */
  readonly value: string;
}

/** `org/name[@ref]`. Throws `InvalidValue`. */
export function parsePackageReference(text: string): PackageReference {
  const at = text.lastIndexOf("@");
  const name = parsePackageName(at < 0 ? text : text.slice(0, at));
  const ref = at < 0 ? "latest" : text.slice(at + 1);
  return { name, ref, ...parseRef(ref) };
}

function parseRef(ref: string): Pick<PackageReference, "type" | "value"> {
  if (ref === "") return { type: "tag", value: "latest" };
  if (isDigits(ref)) return { type: "revision", value: ref };
  return { type: ref.startsWith("sha256:") ? "digest" : "tag", value: ref };
}
