/** A template is a whole value: `${NAME}` or `${NAME:-default}`. */
const TEMPLATE = /^\$\{([^}:]+)(?::-([^\n]*))?\}$/;

export interface Template {
  readonly name: string;
  /** Null if there is none. */
  readonly fallback: string | null;
}

/** A task asks for a variable of the host that does not exist or that it may not read. */
export class MissingHostVariable extends Error {
  override readonly name = "MissingHostVariable";
}

export function parseTemplate(value: string): Template | null {
  const match = TEMPLATE.exec(value);
  return match?.[1] === undefined ? null : { name: match[1], fallback: match[2] ?? null };
}

export type HostVariables = Readonly<Record<string, string | undefined>>;

/** The value of a template; other texts are literal. A variable that is set to nothing counts as set. */
export function resolveTemplate(value: string, host: HostVariables): string {
  const template = parseTemplate(value);
  return template === null ? value : resolveVariable(template, host);
}

export function resolveVariable({ name, fallback }: Template, host: HostVariables): string {
  const found = Object.hasOwn(host, name) ? host[name] : undefined;
  const result = found ?? fallback;
  if (result !== null) return result;
  throw new MissingHostVariable(`the task needs the variable ${name} of the host; set it, and allow the task to read it`);
}

export function resolveTemplates(env: Readonly<Record<string, string>>, host: HostVariables): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([key, value]) => [key, resolveTemplate(value, host)]));
}

/** The variables that an operator lets tasks read. */
export function allowedVariables(host: HostVariables, allowed: readonly string[]): HostVariables {
  return Object.fromEntries(allowed.filter((name) => Object.hasOwn(host, name)).map((name) => [name, host[name]]));
}

/** The templates of an environment, in order: what a run shows before it starts. */
export function requestedVariables(env: Readonly<Record<string, string>>): Template[] {
  return Object.values(env).flatMap((value) => parseTemplate(value) ?? []);
}
