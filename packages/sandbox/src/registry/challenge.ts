/** How a registry wants its clients to identify themselves. */
export type Challenge =
  | { readonly scheme: "basic" }
  | { readonly scheme: "bearer"; readonly realm: string; readonly service: string | null };

const MAX_LENGTH = 4_096;
const SCHEME = /(?:^|,)\s*(basic|bearer)(?=\s|,|$)/gi;
const PARAMETER = /([a-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

/** The first challenge of `WWW-Authenticate` that this client can answer, `Bearer` before `Basic`; null if there is none. */
export function parseChallenge(header: string | readonly string[] | undefined): Challenge | null {
  const text = (typeof header === "string" ? header : (header ?? []).join(", ")).slice(0, MAX_LENGTH);
  const starts = [...text.matchAll(SCHEME)];
  for (const [at, start] of starts.entries()) {
    if (start[1]?.toLowerCase() !== "bearer") continue;
    const part = text.slice(start.index + start[0].length, starts[at + 1]?.index);
    const parameters = new Map(
      [...part.matchAll(PARAMETER)].map(([, name = "", quoted, plain]) => [
        name.toLowerCase(),
        quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "",
      ]),
    );
    const realm = parameters.get("realm");
    if (realm !== undefined) return { scheme: "bearer", realm, service: parameters.get("service") ?? null };
  }
  return starts.some(([, scheme]) => scheme?.toLowerCase() === "basic") ? { scheme: "basic" } : null;
}
