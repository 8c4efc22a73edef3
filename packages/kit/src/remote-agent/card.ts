import { isObject, parseBoundedJson, readBoundedText } from "@aenv/contract";
import { type OutgoingPolicy, sendRequest, urlProblem } from "../outgoing/request.ts";
import { expandVariables } from "../outgoing/variables.ts";

/** How an agent is spoken to. */
export interface AgentInterface {
  readonly url: URL;
  readonly binding: "JSONRPC" | "HTTP+JSON";
  readonly version: "1.0" | "0.3";
  readonly streams: boolean;
}

/** What an agent says of itself. */
export interface RemoteCard {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly skills: readonly {
    readonly id: string;
    readonly name: string;
    readonly description: string;
    readonly tags: readonly string[];
  }[];
  readonly interface: AgentInterface;
}

const MAX_CARD_BYTES = 1_024 ** 2;
const MAX_SKILLS = 100;

/** The address of the card below the address of an agent. */
export function cardUrlOf(url: URL): URL {
  if (url.pathname.endsWith(".json")) return url;
  const base = new URL(url);
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return new URL(".well-known/agent-card.json", base);
}

/** Reads the card of an agent, and checks where it points to: nothing is sent to a private address, nor credentials to another host. */
export async function readCard(
  url: URL,
  headers: Readonly<Record<string, string>>,
  policy: OutgoingPolicy,
  signal: AbortSignal,
): Promise<RemoteCard> {
  const from = cardUrlOf(url);
  const answer = await sendRequest(
    from,
    { method: "GET", headers: { ...headers, accept: "application/json", "a2a-version": "1.0" }, signal },
    policy,
  );
  const text = await readBoundedText(answer, { maxBytes: MAX_CARD_BYTES });
  if (answer.statusCode !== 200) throw new Error(`${from.href} was answered with status ${answer.statusCode}`);
  const card = parseBoundedJson(text);
  if (!isObject(card)) throw new Error(`${from.href} has no card of an agent`);
  const chosen = chooseInterface(card, from);
  const problem = urlProblem(chosen.url, policy);
  if (problem !== null) throw new Error(`the card of the agent leads elsewhere: ${problem}`);
  if (chosen.url.origin !== from.origin && Object.keys(headers).length > 0)
    throw new Error(
      `the card of the agent leads to ${chosen.url.origin}, and the headers are for ${from.origin} only; use that address instead`,
    );
  const { name, description, version, skills } = card;
  return {
    name: textOf(name, 200),
    description: textOf(description, 4_000),
    version: textOf(version, 100),
    skills: (Array.isArray(skills) ? skills : []).filter(isObject).slice(0, MAX_SKILLS).map(skillOf),
    interface: chosen,
  };
}

/** The first interface of version 1.0 with a binding that is spoken here, else of 0.3. */
function chooseInterface(card: Readonly<Record<string, unknown>>, from: URL): AgentInterface {
  const capabilities = isObject(card.capabilities) ? card.capabilities : {};
  const streams = capabilities.streaming === true;
  const listed = (Array.isArray(card.supportedInterfaces) ? card.supportedInterfaces : []).filter(isObject);
  for (const version of ["1.0", "0.3"] as const)
    for (const { url, protocolBinding: binding, protocolVersion } of listed)
      if (versionOf(protocolVersion) === version && isBinding(binding)) return { url: absolute(url, from), binding, version, streams };
  // A card of 0.3 names its address and its transport itself.
  const others = (Array.isArray(card.additionalInterfaces) ? card.additionalInterfaces : []).filter(isObject);
  const own = [{ url: card.url, transport: card.preferredTransport ?? "JSONRPC" }, ...others];
  for (const { url, transport } of own)
    if (url !== undefined && isBinding(transport)) return { url: absolute(url, from), binding: transport, version: "0.3", streams };
  throw new Error("the agent speaks neither JSON-RPC nor HTTP+JSON of A2A 1.0 or 0.3");
}

function versionOf(value: unknown): "1.0" | "0.3" | null {
  const text = String(value);
  return /^1\.0(?:\.\d+)?$/.test(text) ? "1.0" : /^0\.3(?:\.\d+)?$/.test(text) ? "0.3" : null;
}

function isBinding(value: unknown): value is "JSONRPC" | "HTTP+JSON" {
  return value === "JSONRPC" || value === "HTTP+JSON";
}

function absolute(url: unknown, from: URL): URL {
  if (typeof url === "string" && URL.canParse(url, from.href)) return new URL(url, from);
  throw new Error("the card of the agent has an address that is no URL");
}

function skillOf({ id, name, description, tags }: Readonly<Record<string, unknown>>) {
  return {
    id: textOf(id, 200),
    name: textOf(name, 200),
    description: textOf(description, 2_000),
    tags: (Array.isArray(tags) ? tags : []).slice(0, 20).map((tag) => textOf(tag, 100)),
  };
}

function textOf(value: unknown, most: number): string {
  return typeof value === "string" ? value.slice(0, most) : "";
}

/** Reads the card of an agent as `remoteAgent` does. */
export function describeRemoteAgent(
  url: string,
  options: Pick<OutgoingPolicy, "allowPrivate"> & { readonly headers?: Readonly<Record<string, string>> },
  variables: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<RemoteCard> {
  return readCard(new URL(url), expandVariables(options.headers ?? {}, variables, "the remote agent"), options, signal);
}
