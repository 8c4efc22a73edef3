// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of tasks have this form.
import { strip } from "@aenv/benchmark";
import { isSensitive } from "./secrets.ts";
import { type HostVariables, resolveVariable } from "./template.ts";

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Templates in a header may be parts of its value. */
const TEMPLATE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
/** The only form of a header with a credential: templates without defaults, after a scheme such as `Bearer`. */
const CREDENTIAL_TEMPLATE = "\\$\\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\\}";
const CREDENTIAL = new RegExp(`^\\s*(?:[A-Za-z]+\\s+)?${CREDENTIAL_TEMPLATE}(?:[\\s:-]*${CREDENTIAL_TEMPLATE})*\\s*$`);

/** Why an MCP server cannot have a header; null if it can. Credentials must be templates: a task's file is published as it is. */
export function headerProblem(name: string, value: string): string | null {
  if (!HEADER_NAME.test(name)) return "this is not a name of an HTTP header";
  if (/[\r\n]/.test(value)) return "must not contain line breaks";
  const templates = [...value.matchAll(TEMPLATE)];
  const hasOther = value.replace(TEMPLATE, " ").includes("${") || templates.some(([, , fallback]) => fallback?.includes("${"));
  if (hasOther) return "has a template in another form than ${NAME} and ${NAME:-default}";
  const isSecret = isSensitive(name) || ["cookie", "set-cookie"].includes(name.toLowerCase());
  const hasSecret = templates.some(([, variable = "", fallback = ""]) => fallback !== "" && (isSecret || isSensitive(variable)));
  if (!hasSecret && (!isSecret || strip(value) === "" || CREDENTIAL.test(value))) return null;
  return "must name its credential as ${NAME} without a default, such as 'Bearer ${TOKEN}'";
}

/** The headers with the values of their templates. Throws `MissingHostVariable` for one without a value. */
export function resolveHeaders(headers: Readonly<Record<string, string>>, host: HostVariables): Record<string, string> {
  const resolved = (value: string) =>
    value.replace(TEMPLATE, (_, name: string, fallback?: string) => resolveVariable({ name, fallback: fallback ?? null }, host));
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, resolved(value)]));
}
