import { createHash } from "node:crypto";
import { servicePrefix } from "@aenv/contract";
import { isAgentTool } from "../agent/tools.ts";
import type { CompiledEnvironment, Toolset } from "../compile/environment.ts";

export interface CardOptions {
  readonly environment: CompiledEnvironment;
  readonly tools: Toolset;
  /** Where the paths of the instance begin, with a slash at the end. */
  readonly baseUrl: string;
  /** Whether clients send a token. */
  readonly needsToken: boolean;
  /** Old clients need fields that version 1.0 does not have. */
  readonly isHybrid: boolean;
}

const TEXT_MODES = ["text/plain", "application/json"];

/** What the instance says about itself to clients of A2A. */
export function agentCard({ environment, tools, baseUrl, needsToken, isHybrid }: CardOptions): object {
  const { name, version, definition } = environment;
  const isAgent = definition.agent !== undefined;
  const url = `${baseUrl}a2a`;
  const description = definition.description ?? (isAgent ? `The agent ${name}.` : `The environment ${name}: its tools are skills.`);
  const security = { name: "bearer", scheme: { httpAuthSecurityScheme: { scheme: "Bearer" } } };
  return {
    name,
    description,
    version,
    supportedInterfaces: [
      { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      ...(isHybrid ? [{ url, protocolBinding: "JSONRPC", protocolVersion: "0.3" }] : []),
    ],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    defaultInputModes: TEXT_MODES,
    defaultOutputModes: TEXT_MODES,
    skills: skillsOf(environment, tools, description),
    ...(needsToken && {
      securitySchemes: { [security.name]: isHybrid ? { ...security.scheme, type: "http", scheme: "bearer" } : security.scheme },
      securityRequirements: [{ schemes: { [security.name]: { list: [] } } }],
      ...(isHybrid && { security: [{ [security.name]: [] }] }),
    }),
    ...(isHybrid && {
      url,
      preferredTransport: "JSONRPC",
      protocolVersion: "0.3",
      additionalInterfaces: [
        { url, transport: "JSONRPC" },
        { url, transport: "HTTP+JSON" },
      ],
      supportsAuthenticatedExtendedCard: false,
    }),
  };
}

/** A card has at least one skill. */
function skillsOf({ name, definition }: CompiledEnvironment, tools: Toolset, description: string): readonly object[] {
  const { skills = [], agent } = definition;
  if (skills.length > 0)
    return skills.map(({ tags = ["agent"], ...skill }) => ({ name: skill.id, ...skill, tags: tags.length > 0 ? tags : ["agent"] }));
  const own = agent === undefined ? [...tools.values()].filter(({ descriptor }) => !isAgentTool(descriptor.name)) : [];
  if (own.length === 0) return [{ id: name, name, description, tags: [agent === undefined ? "environment" : "agent"] }];
  return own.map(({ descriptor }) => ({
    id: descriptor.name,
    name: descriptor.title ?? descriptor.name,
    description: descriptor.description ?? "",
    tags: ["tool"],
    examples: [JSON.stringify({ tool: descriptor.name, arguments: {} })],
    inputModes: ["application/json"],
  }));
}

/** Headers by which clients keep the card. That of a service names a replica, which may end. */
export function cardHeaders(card: string, baseUrl: string): { readonly etag: string } & Record<string, string> {
  const isOfService = new URL(baseUrl).pathname.startsWith(servicePrefix(""));
  return {
    "cache-control": `max-age=${isOfService ? 0 : 60}`,
    etag: `"${createHash("sha256").update(card).digest("base64url").slice(0, 27)}"`,
    vary: "A2A-Version",
  };
}
