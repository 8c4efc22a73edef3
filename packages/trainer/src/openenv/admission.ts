import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { PlatformError } from "@aenv/contract";
import { type Access, type Caller, OPENENV } from "@aenv/server/trainer-services";

/** A request that was admitted: who asks, for which environment, and what. */
export interface Admitted {
  readonly caller: Caller;
  /** The environment as the client names it. */
  readonly ref: string;
  /** The path below the environment, such as `/reset`. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Reads the path and the token, and checks the role. `onCaller` is told who asks. Throws `PlatformError` if the caller is refused. */
export async function admit(request: IncomingMessage, access: Access, onCaller: (owner: string) => void): Promise<Admitted> {
  const { token, ...asked } = readPath(request.url ?? "");
  const caller = await access.identify(token === null ? bearerOf(request.headers) : `Bearer ${token}`);
  onCaller(caller.owner);
  access.assertRole(caller, "trainer", "publisher");
  return { caller, ...asked };
}

/** Clients that cannot set headers put their token into the path. */
function readPath(url: string): Omit<Admitted, "caller"> & { readonly token: string | null } {
  const [whole = "", query = ""] = url.split("?", 2);
  const segments = whole.slice(OPENENV.length).split("/").map(decode);
  const token = segments[0]?.startsWith("aenv_") === true ? (segments.shift() ?? null) : null;
  const [ref = "", ...below] = segments;
  if (ref === "") throw new PlatformError("route.not_found", `write ${OPENENV}<name@version> before the path`);
  // Some clients append paths to a base URL that ends with a slash.
  const path = below.filter((segment) => segment !== "").join("/");
  return { token, ref, path: `/${path}`, query: new URLSearchParams(query) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new PlatformError("route.not_found", "the path is badly escaped");
  }
}

/** A URL such as `https://token:aenv_…@host` is sent as Basic authorization; the token is its password or its user. */
function bearerOf({ authorization }: IncomingHttpHeaders): string | undefined {
  const [, encoded] = /^basic +(\S+)$/i.exec(authorization?.trim() ?? "") ?? [];
  if (encoded === undefined) return authorization;
  const pair = Buffer.from(encoded, "base64").toString("utf8");
  const at = pair.indexOf(":");
  const [user, password] = at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
  return `Bearer ${password.startsWith("aenv_") || user === "" ? password : user}`;
}
