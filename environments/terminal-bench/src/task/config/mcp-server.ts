import { list, map, object } from "../../fields/containers.ts";
import { before, type Field, InvalidValue, optional, refine, withDefault } from "../../fields/field.ts";
import { oneOf, text } from "../../fields/scalars.ts";
import { headerProblem } from "../../templates/headers.ts";
import type { Edition } from "./network.ts";

export interface McpServerConfig {
  readonly name: string;
  readonly transport: "sse" | "streamable-http" | "stdio";
  readonly url: string | null;
  readonly command: string | null;
  readonly args: readonly string[];
  /** Only for transports with a URL. Their values may have templates. */
  readonly headers: Readonly<Record<string, string>>;
}

const headers: Field<Readonly<Record<string, string>>> = refine(map(text), (given, at) => {
  for (const [name, value] of Object.entries(given)) {
    const problem = headerProblem(name, value);
    if (problem !== null) throw new InvalidValue(`${at}.${name}`, problem);
  }
  return given;
});

export function mcpServerField(edition: Edition): Field<McpServerConfig> {
  const shape = {
    name: text,
    transport: withDefault(
      before((value) => (value === "http" ? "streamable-http" : value), oneOf("sse", "streamable-http", "stdio")),
      "sse",
    ),
    url: optional(text),
    command: optional(text),
    args: withDefault(list(text), []),
    headers: edition === "later" ? withDefault(headers, {}) : { parse: () => ({}), absent: () => ({}) },
  };
  return refine(object(shape), (server, at) => {
    if (server.transport === "stdio" ? !server.command : !server.url) {
      const key = server.transport === "stdio" ? "command" : "url";
      throw new InvalidValue(`${at}.${key}`, `required with the transport '${server.transport}'`);
    }
    if (server.transport === "stdio" && Object.keys(server.headers).length > 0)
      throw new InvalidValue(`${at}.headers`, "only servers with a URL have headers");
    return server;
  });
}

export const mcpServer = mcpServerField("later");
