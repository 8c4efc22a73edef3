import { list, object } from "../../fields/containers.ts";
import { before, InvalidValue, optional, type Parsed, refine, withDefault } from "../../fields/field.ts";
import { oneOf, text } from "../../fields/scalars.ts";

const shape = {
  name: text,
  transport: withDefault(
    before((value) => (value === "http" ? "streamable-http" : value), oneOf("sse", "streamable-http", "stdio")),
    "sse",
  ),
  url: optional(text),
  command: optional(text),
  args: withDefault(list(text), []),
};

export type McpServerConfig = Parsed<typeof shape>;

export const mcpServer = refine(object(shape), (server, at) => {
  if (server.transport === "stdio" ? !server.command : !server.url) {
    const key = server.transport === "stdio" ? "command" : "url";
    throw new InvalidValue(`${at}.${key}`, `required with the transport '${server.transport}'`);
  }
  return server;
});
