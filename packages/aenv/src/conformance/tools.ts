import { toolDescriptor } from "@aenv/contract";
import type { Check } from "./check.ts";
import { digestOf, parsed } from "./episode.ts";
import { rolesOf } from "./roles.ts";
import { NotOffered, Violation } from "./violation.ts";
import { cut } from "./wire.ts";

export const toolChecks: readonly Check[] = [
  {
    name: "reports that it is healthy",
    run: async ({ wire, health }) => {
      const { status, text } = await wire.send("GET", health);
      if (status >= (health === "/health" ? 500 : 400)) throw new Violation(`GET ${health} was answered with ${status} ${cut(text)}`);
      return undefined;
    },
  },
  {
    name: "answers MCP's initialize, ping and notifications, and an unknown method with an error",
    run: async (subject) => {
      const [role] = await rolesOf(subject.wire);
      if (role !== undefined) subject.wire = subject.wire.as(role);
      const { wire } = subject;
      const { protocolVersion, capabilities } = await wire.initialize();
      if (typeof protocolVersion !== "string" || capabilities === undefined)
        throw new Violation("the result of initialize must have 'protocolVersion' and 'capabilities'");
      const notified = await wire.notify("notifications/initialized");
      if (notified !== 202) throw new Violation(`a notification must be answered with 202 and no body; it was ${notified}`);
      await wire.rpc("ping");
      const unknown = await wire.message("aenv/no-such-method", {});
      if (unknown.error === undefined) throw new Violation("an unknown method must be answered with a JSON-RPC error, -32601");
      return undefined;
    },
  },
  {
    name: "lists tools with a name and a schema of their arguments",
    run: async (subject) => {
      const { tools } = await subject.wire.rpc("tools/list");
      if (!Array.isArray(tools)) throw new Violation("the result of tools/list must have a list 'tools'");
      subject.tools = tools.map((tool: unknown) => parsed(toolDescriptor, tool, "tools/list"));
      const names = subject.tools.map(({ name }) => name);
      const twice = names.find((name, at) => names.indexOf(name) !== at);
      if (twice !== undefined) throw new Violation(`tools/list has two tools '${twice}'`);
      const loose = subject.tools.find(({ inputSchema }) => inputSchema.type !== "object");
      if (loose !== undefined) throw new Violation(`the inputSchema of the tool '${loose.name}' must have "type": "object"`);
      return names.length === 0 ? "it has no tools" : cut(names.join(", "));
    },
  },
  {
    name: "answers an unknown tool and wrong arguments with an error, and does not change its state",
    run: async (subject) => {
      const { wire, tools } = subject;
      if (tools.length === 0) throw new NotOffered("it has no tools");
      const before = await digestOf(subject);
      const needing = tools.find(({ inputSchema: { required } }) => Array.isArray(required) && required.length > 0);
      const unknown = { name: "aenv-no-such-tool", arguments: {} };
      const calls = [unknown, ...(needing === undefined ? [] : [{ name: needing.name, arguments: {} }])];
      for (const params of calls) {
        const { error, result } = (await wire.message("tools/call", params)) as {
          error?: { code?: unknown; message?: unknown };
          result?: { isError?: unknown };
        };
        if (error === undefined && result?.isError !== true)
          throw new Violation(
            `tools/call with ${JSON.stringify(params)} must be answered with a JSON-RPC error, or with a result that has "isError": true`,
          );
        if (params === unknown && error !== undefined && !(error.code === -32602 && /unknown tool|not found/i.test(String(error.message))))
          throw new Violation(
            `an unknown tool must be answered with the error -32602 and the message "Unknown tool: NAME"; it was ${cut(JSON.stringify(error))}`,
          );
      }
      if ((await digestOf(subject)) !== before) throw new Violation("a refused tool call has changed the digest of the state");
      return undefined;
    },
  },
];
