import { PlatformError } from "@aenv/contract";

/** What a registry knows its client by. */
export type Credentials =
  | { readonly kind: "password"; readonly username: string; readonly password: string }
  /** `docker login` stored an identity token: the token server exchanges it for a token. */
  | { readonly kind: "identity"; readonly token: string };

/** Docker's own registry has this name in files of `docker login`. */
const DOCKER_HUB = "https://index.docker.io/v1/";

/** The credentials for a registry in a file in the format of `docker login`; null if it has none. No error contains them. */
export function credentialsFor(registry: string, text: string, file: string): Credentials | null {
  let auths: unknown;
  try {
    auths = (JSON.parse(text) as { readonly auths?: unknown }).auths;
  } catch {
    throw new PlatformError("request.invalid", `the file ${file} with the credentials of registries is not JSON`);
  }
  const names = registry === "docker.io" ? [DOCKER_HUB, registry] : [registry, `https://${registry}`, `http://${registry}`];
  const known = (auths ?? {}) as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
  const entry = names.map((name) => known[name]).find((one) => one !== undefined);
  if (entry === undefined) return null;
  if (typeof entry.identitytoken === "string") return { kind: "identity", token: entry.identitytoken };
  const [username = "", ...password] = Buffer.from(String(entry.auth ?? ""), "base64")
    .toString("utf8")
    .split(":");
  return { kind: "password", username, password: password.join(":") };
}
