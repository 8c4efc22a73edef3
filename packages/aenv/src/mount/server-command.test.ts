import { describe, expect, it } from "vitest";
import { parseServerCommand } from "./server-command.ts";

const read = (line: string) => parseServerCommand(line.split(" "));

describe("the command of an MCP server", () => {
  it.each([
    ["npx -y @a/server one --two", { kind: "npm", spec: "@a/server", bin: null, args: ["one", "--two"] }],
    ["npx --yes server@1.2 -y", { kind: "npm", spec: "server@1.2", bin: null, args: ["-y"] }],
    ["npx -y -p @a/servers server-b x", { kind: "npm", spec: "@a/servers", bin: "server-b", args: ["x"] }],
    ["npx --package=@a/servers server-b", { kind: "npm", spec: "@a/servers", bin: "server-b", args: [] }],
    ["npm exec -- server x", { kind: "npm", spec: "server", bin: null, args: ["x"] }],
    [
      "uvx mcp-server-time --local-timezone UTC",
      { kind: "pypi", spec: "mcp-server-time", script: null, args: ["--local-timezone", "UTC"] },
    ],
    ["uvx mcp-server-time@2026.1", { kind: "pypi", spec: "mcp-server-time==2026.1", script: null, args: [] }],
    ["uvx --from servers[http] server-b x", { kind: "pypi", spec: "servers[http]", script: "server-b", args: ["x"] }],
    ["uv tool run server", { kind: "pypi", spec: "server", script: null, args: [] }],
    ["node ./server.js --stdio", { kind: "file", file: "./server.js", args: ["--stdio"] }],
  ])("%s", (line, expected) => expect(read(line)).toEqual(expected));

  it.each([
    ["docker run server", /'docker' cannot be mounted/],
    ["npx", /name of a package/],
    ["npx --node-options=x server", /--node-options=x is not supported/],
    ["uvx", /name of a package/],
    ["node --inspect x.js", /needs a file/],
  ])("%s is refused", (line, message) => expect(() => read(line)).toThrow(message));
});
