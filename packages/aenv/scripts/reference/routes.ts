import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { instanceRoutes } from "@aenv/contract";
import { readServerConfig, startServer } from "@aenv/server";
import { openTrainerServices } from "@aenv/trainer";
import { type Page, page, table } from "./page.ts";

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly summary: string;
  readonly tags: readonly string[];
  readonly "x-roles"?: readonly string[];
}

/** `routes.md`: the control port from its OpenAPI document, and the data port from the contract. */
export function routesPage({ paths }: OpenApi): Page {
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary, tags, "x-roles": roles }]) => ({
      tag: tags[0] ?? "other",
      cells: [method.toUpperCase(), `\`${path}\``, roles?.join(", ") ?? "everybody", summary],
    })),
  );
  const tags = [...new Set(rows.map(({ tag }) => tag))];
  const control = tags.map((tag) => {
    const cells = rows.filter((row) => row.tag === tag).map((row) => row.cells);
    return `### ${tag[0]?.toUpperCase()}${tag.slice(1)}\n\n${table(["Method", "Path", "Roles", "What it does"], cells)}`;
  });
  const data = Object.values(instanceRoutes).map((route) => [route.method, `\`${route.path}\``, route.api, route.does]);
  return page(
    "routes.md",
    "Routes",
    "A running server describes its control port at `/openapi.json`, with the schemas of requests and answers, and as a web page at `/docs`.",
    "## Control port",
    ...control,
    "## Data port",
    "Each route is below `/env-instance/<id>` and, for a service, below `/env-service/<name>`. An agent link `/agent/<key>` has the routes of the agent API only.",
    table(["Method", "Path", "API", "What it does"], data),
  );
}

/** The OpenAPI document of a server that is started for this on free ports, with an empty store. */
export async function servedOpenApi(): Promise<OpenApi> {
  const home = await mkdtemp(join(tmpdir(), "aenv-reference-"));
  const flags = { home, controlPort: 0, dataPort: 0, store: "memory:", logLevel: "silent", poolMin: 0 };
  const config = readServerConfig({ flags, variables: {} });
  const server = await startServer({ config, runner: [process.execPath], openTrainerServices, version: "0.0.0" });
  try {
    return (await (await fetch(`${server.controlUrl}/openapi.json`)).json()) as OpenApi;
  } finally {
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
}
