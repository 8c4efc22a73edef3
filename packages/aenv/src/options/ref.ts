import { formatRef, splitRef } from "@aenv/contract";
import { Failure } from "../terminal/failure.ts";

/** `name@version` from the argument and `--version`, which must not differ. */
export function refArgument(text: string, version?: string): string {
  const ref = splitRef(text);
  if (ref.name === "")
    throw new Failure(`'${text}' is not the name of an environment`, { exit: "usage", hint: "Write it as: my-env or my-env@1.0.0" });
  if (version === undefined) return text.replace(/@$/, "");
  if (ref.version !== "" && ref.version !== version) {
    throw new Failure(`${text} and --version ${version} are different versions`, { exit: "usage", hint: "Give only one of them." });
  }
  return formatRef({ name: ref.name, version });
}

/** The same, but the version is required. */
export function exactRefArgument(text: string, version?: string): string {
  const ref = refArgument(text, version);
  if (splitRef(ref).version !== "") return ref;
  throw new Failure(`the version of ${ref} is missing`, {
    exit: "usage",
    hint: `Write it as: ${ref}@1.0.0. List the versions with: aenv env versions ${ref}`,
  });
}
