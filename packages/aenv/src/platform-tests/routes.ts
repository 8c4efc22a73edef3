import type { Platform } from "./platform.ts";

/** A route of the control port, from `/openapi.json`. */
export interface ListedRoute {
  readonly method: string;
  /** With `{name}` for parameters. */
  readonly path: string;
  /** Null for public routes. */
  readonly roles: readonly string[] | null;
}

/** Every route of the control port, so that tests of "every route" include new ones. */
export async function routesOf(platform: Pick<Platform, "controlUrl">): Promise<ListedRoute[]> {
  const response = await fetch(`${platform.controlUrl}/openapi.json`);
  const { paths } = (await response.json()) as { paths: Record<string, Record<string, { "x-roles"?: string[] }>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ method: method.toUpperCase(), path, roles: one["x-roles"] ?? null })),
  );
}

export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? `unknown-${name}`));
}
