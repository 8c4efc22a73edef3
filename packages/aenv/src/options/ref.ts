import { formatRef, splitRef } from "@aenv/contract";
import { Failure } from "../terminal/failure.ts";

/** `name@version` from the argument and `--version`, which must not differ. */
export function refArgument(text: string, version?: string): string {
  const ref = splitRef(text);
  if (ref.name === "") throw new Failure(`'${text}' names no environment`, { exit: "usage", hint: "Write it as: my-env or my-env@1.0.0" });
  if (version === undefined) return text.replace(/@$/, "");
  if (ref.version !== "" && ref.version !== version) {
    throw new Failure(`${text} and --version ${version} name two versions`, { exit: "usage", hint: "Give one of them." });
  }
  return formatRef({ name: ref.name, version });
}

/** The same where a version must be named. */
export function exactRefArgument(text: string, version?: string): string {
  const ref = refArgument(text, version);
  if (splitRef(ref).version !== "") return ref;
  throw new Failure(`which version of ${ref}?`, {
    exit: "usage",
    hint: `Write it as: ${ref}@1.0.0. See them with: aenv env versions ${ref}`,
  });
}
